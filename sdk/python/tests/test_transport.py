"""Retries, timeouts and errors, against a server that misbehaves."""

from __future__ import annotations

import logging
import pickle
import re
import traceback
from typing import Any

import httpx
import pytest

import millwright
from millwright import _retry
from millwright import types as t

from .conftest import KEY, Both
from .hostile import Behaviour, Hostile, answer, drip, hang, problem, raw, reset

RUN = {
    "run_id": "0199d3a4-0000-7000-8000-000000000001", "task_id": "0199d3a4-0000-7000-8000-000000000001",
    "root_run_id": "0199d3a4-0000-7000-8000-000000000001", "title": "A run", "prompt": "do", "state": "QUEUED",
    "created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:05.678Z",
}  # fmt: skip
CREATED = {"run_id": RUN["run_id"], "task_id": RUN["run_id"], "state": "QUEUED"}


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "invalid_request", millwright.BadRequestError),
        (401, "authentication_required", millwright.AuthenticationError),
        (403, "not_authorized", millwright.PermissionDeniedError),
        (404, "resource_not_found", millwright.NotFoundError),
        (409, "conflict", millwright.ConflictError),
        (413, "payload_too_large", millwright.PayloadTooLargeError),
        (422, "operation_not_supported", millwright.UnprocessableEntityError),
        (429, "rate_limited", millwright.RateLimitError),
        (500, "internal_error", millwright.InternalServerError),
        (503, "resource_unavailable", millwright.InternalServerError),
        (405, "invalid_request", millwright.APIStatusError),
    ],
)
def test_a_class_for_each_status(hostile: Hostile, both: Both, status: int, code: str, kind: type) -> None:
    hostile.play(problem(status, code, retryable=status >= 429, Retry_After="7"))
    with pytest.raises(millwright.APIStatusError) as caught:
        both(lambda c: c.agent.runs.retrieve("r"), base_url=hostile.base_url, max_retries=0)
    e = caught.value
    assert type(e) is kind
    assert (e.status_code, e.code, e.title, e.detail, e.request_id) == (
        status,
        code,
        "Title",
        "said so",
        "trace-1",
    )
    assert e.retryable is (status >= 429)
    assert e.retry_after == 7
    assert "Title (said so)" in str(e)
    assert "GET /agent/runs/r" in str(e)


def test_the_fields_that_were_wrong(hostile: Hostile, both: Both) -> None:
    wrong = [
        {"field": "prompt", "message": "is required"},
        {"field": "config.skill_spec", "message": "odd"},
        7,
        {},
    ]
    hostile.play(answer(400, {"code": "invalid_request", "error": "Invalid request", "errors": wrong}))
    with pytest.raises(millwright.BadRequestError) as caught:
        both(lambda c: c.agent.runs.create(prompt=""), base_url=hostile.base_url)
    assert caught.value.errors == [*wrong[:2], {"field": "", "message": ""}]
    assert len(hostile.requests) == 1


@pytest.mark.parametrize(
    "failure",
    [
        problem(408, "x"), problem(409, "conflict"), problem(429, "rate_limited"), problem(500, "internal_error"),
        problem(502, "x"), problem(503, "resource_unavailable"), problem(599, "x"), reset(), raw(b""),
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), reset(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
        raw(b"nonsense\r\n\r\n"), raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}"),
        problem(418, "x", X_Should_Retry="true"),
    ],
    ids=lambda f: getattr(f, "__qualname__", "") + str(id(f))[-3:],
)  # fmt: skip
def test_failures_that_may_pass_are_tried_again(hostile: Hostile, both: Both, failure: Behaviour) -> None:
    hostile.play(failure, failure, answer(200, CREATED))
    run = both(lambda c: c.agent.runs.create(prompt="do"), base_url=hostile.base_url)
    assert run.run_id == RUN["run_id"]
    keys = [r.headers["idempotency-key"] for r in hostile.requests]
    assert len(keys) == 3
    assert len(set(keys)) == 1, "a retry must have the key of the first attempt"
    assert len({r.body for r in hostile.requests}) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        problem(400, "invalid_request"), problem(401, "x"), problem(403, "x"), problem(404, "x"), problem(413, "x"),
        problem(422, "x"), problem(409, "conflict", X_Should_Retry="false"), problem(500, "x", X_Should_Retry="false"),
        answer(302, b"", Location="http://127.0.0.1:1/elsewhere"),
    ],
    ids=lambda f: str(id(f))[-3:],
)  # fmt: skip
def test_refusals_are_not_tried_again(hostile: Hostile, both: Both, refusal: Behaviour) -> None:
    hostile.play(refusal)
    with pytest.raises(millwright.APIStatusError):
        both(lambda c: c.agent.runs.create(prompt="do"), base_url=hostile.base_url)
    assert len(hostile.requests) == 1


def test_retries_end(hostile: Hostile, both: Both) -> None:
    hostile.play(problem(500, "internal_error"))
    with pytest.raises(millwright.InternalServerError):
        both(lambda c: c.agent.runs.list(), base_url=hostile.base_url)
    assert len(hostile.requests) == 3
    with pytest.raises(millwright.InternalServerError):
        both(lambda c: c.agent.runs.list(max_retries=0), base_url=hostile.base_url)
    assert len(hostile.requests) == 4
    with pytest.raises(millwright.InternalServerError):
        both(lambda c: c.with_options(max_retries=1).agent.runs.list(), base_url=hostile.base_url)
    assert len(hostile.requests) == 6


def test_two_creates_have_two_keys_and_one_can_be_given(hostile: Hostile, both: Both) -> None:
    hostile.play(answer(200, CREATED))
    for _ in range(2):
        both(lambda c: c.agent.runs.create(prompt="do"), base_url=hostile.base_url)
    both(lambda c: c.agent.runs.create(prompt="do", idempotency_key="mine"), base_url=hostile.base_url)
    a, b, mine = (r.headers["idempotency-key"] for r in hostile.requests)
    assert a != b
    assert mine == "mine"


def test_retry_after_is_waited_for(hostile: Hostile, both: Both) -> None:
    hostile.play(problem(429, "rate_limited", Retry_After="0.2"), answer(200, CREATED))
    both(lambda c: c.agent.runs.create(prompt="do"), base_url=hostile.base_url)
    first, second = hostile.requests
    assert second.at - first.at >= 0.2


def test_a_long_retry_after_is_said_at_once(hostile: Hostile, both: Both) -> None:
    hostile.play(problem(429, "rate_limited", Retry_After="3600"))
    with pytest.raises(millwright.RateLimitError) as caught:
        both(lambda c: c.agent.runs.list(), base_url=hostile.base_url)
    assert caught.value.retry_after == 3600
    assert len(hostile.requests) == 1


@pytest.mark.parametrize(
    "value",
    [
        "",
        "soon",
        "-1",
        "nan",
        "inf",
        "-inf",
        "Mon, 99 Jan 2026",
        "1e400",
        "\u00e9".encode("latin-1").decode("latin-1"),
    ],
)
def test_a_senseless_retry_after_is_not_heeded(value: str) -> None:
    assert _retry.retry_after(httpx.Headers([(b"retry-after", value.encode("latin-1"))])) is None


def test_delays_grow_and_are_never_shorter_than_asked() -> None:
    for attempt in range(40):
        wait = _retry.delay(attempt)
        assert wait is not None
        longest = min(0.5 * 2.0**attempt, 8)
        assert 0.75 * longest <= wait <= longest
        asked = _retry.delay(attempt, 5)
        assert asked is not None
        assert 5 <= asked <= 5.5
    assert len({_retry.delay(3) for _ in range(50)}) > 25, "without jitter, clients come back all at once"


@pytest.mark.parametrize(
    "slow",
    [hang(), hang(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"), drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")],
    ids=["silent", "stuck", "dripping"],
)  # fmt: skip
def test_timeouts(hostile: Hostile, both: Both, slow: Behaviour) -> None:
    hostile.play(slow)
    with pytest.raises(millwright.APITimeoutError) as caught:
        both(lambda c: c.agent.runs.retrieve("r"), base_url=hostile.base_url, timeout=1, max_retries=1)
    assert isinstance(caught.value, millwright.APIConnectionError)
    assert isinstance(caught.value, TimeoutError)
    assert len(hostile.received(2)) == 2
    with pytest.raises(millwright.APITimeoutError):
        both(lambda c: c.agent.runs.retrieve("r", timeout=1, max_retries=0), base_url=hostile.base_url)
    assert len(hostile.received(3)) == 3


def test_a_server_that_is_not_there(both: Both) -> None:
    server = Hostile()
    base_url = server.base_url
    server.close()
    with pytest.raises(millwright.APIConnectionError, match=re.escape(server_of(base_url))) as caught:
        both(lambda c: c.agent.runs.retrieve("r"), base_url=base_url, max_retries=0)
    assert not isinstance(caught.value, millwright.APITimeoutError)


def server_of(base_url: str) -> str:
    return base_url.removesuffix("/api/v1")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (answer(200, b"<html><title>Welcome</title>", "text/html"), "not JSON"),
        (answer(200, b'{"run_id": "x", "state": '), "not JSON"),
        (answer(200, b""), "empty"),
        (answer(204, b"", ""), "empty"),
        (answer(200, b"\xff\xfe{}"), "not JSON"),
        (answer(200, b"[" * 100_000), "not JSON"),
        (answer(200, b"null"), "should be an object"),
        (answer(200, [1, 2]), "should be an object"),
        (answer(200, {"hello": "world"}), "no member of RunItem"),
        (answer(200, {"run_id": 7}), "run_id: Input should be a valid string"),
    ],
    ids=["html", "truncated", "empty", "no-content", "not-utf8", "deep", "null", "list", "another", "wrong-type"],
)  # fmt: skip
def test_a_success_that_makes_no_sense(hostile: Hostile, both: Both, bad: Behaviour, reason: str) -> None:
    hostile.play(bad)
    with pytest.raises(millwright.APIResponseValidationError, match=reason) as caught:
        both(lambda c: c.agent.runs.retrieve("r"), base_url=hostile.base_url)
    assert 200 <= caught.value.status_code < 300
    assert isinstance(caught.value, millwright.APIError)
    assert len(hostile.requests) == 1


@pytest.mark.parametrize(
    "body",
    [b"<html>Bad gateway</html>", b"", b"{", b"null", b"[]", b'"text"', b"7", b"\xff\x00", b"[" * 100_000, b'{"error": 7, "errors": 9, "retryable": "no", "code": []}'],
    ids=range(10),
)  # fmt: skip
def test_an_error_that_makes_no_sense(hostile: Hostile, both: Both, body: bytes) -> None:
    hostile.play(answer(502, body, "text/html"))
    with pytest.raises(millwright.InternalServerError) as caught:
        both(lambda c: c.agent.runs.retrieve("r"), base_url=hostile.base_url, max_retries=0)
    e = caught.value
    assert e.status_code == 502
    assert e.retryable
    assert e.code is None
    assert e.errors == []
    assert "text/html" in str(e)
    assert "Bad gateway" not in str(e)
    assert e.text == body.decode("utf-8", "replace")


def test_a_body_without_end_is_not_read_on(
    hostile: Hostile, both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    for half in ("_sync", "_async"):
        monkeypatch.setattr(f"millwright.{half}._transport.LONGEST_BODY", 100_000)
    endless = drip(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", b" " * 50_000, 0)
    hostile.play(endless)
    with pytest.raises(millwright.APIResponseValidationError, match="longer than"):
        both(lambda c: c.agent.runs.retrieve("r"), base_url=hostile.base_url)


def test_what_is_new_in_an_answer_is_kept(hostile: Hostile, both: Both) -> None:
    hostile.play(
        answer(200, {**RUN, "state": "DREAMING", "source": "CARRIER_PIGEON", "mood": {"is": ["good"]}})
    )
    run = both(lambda c: c.agent.runs.retrieve("r"), base_url=hostile.base_url)
    assert run.state == "DREAMING"
    assert run.source == "CARRIER_PIGEON"
    assert run.mood == {"is": ["good"]}
    assert run.model_dump()["mood"] == {"is": ["good"]}
    assert run.created_at.year == 2026


def test_the_key_is_nowhere_to_be_seen(
    hostile: Hostile, both: Both, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[Any] = []

    def look(client: Any) -> Any:
        shown.extend([client, client.agent.runs, client._client.settings, vars(client).keys()])
        return client.agent.runs.retrieve("r")

    for bad in (
        answer(401, {"error": f"wrong key {KEY}", "detail": KEY, "title": KEY}),
        answer(502, f"<p>you sent {KEY}</p>".encode(), "text/html"),
        answer(200, f"<p>you sent {KEY}</p>".encode(), "text/html"),
        answer(200, b"<p>", f"text/html; for={KEY}", x_request_id=KEY),
        answer(403, {}, f"text/html; for={KEY}", x_request_id=KEY),
        raw(b"nonsense\r\n\r\n"),
        reset(),
    ):
        hostile.play(bad)
        with pytest.raises(millwright.APIError) as caught:
            both(look, base_url=hostile.base_url, max_retries=0)
        e = caught.value
        assert e.__cause__ is None
        assert e.__context__ is None
        shown += [e, e.args, vars(e), "".join(traceback.format_exception(e))]
        frames = [f for f, _ in traceback.walk_tb(e.__traceback__) if "millwright" in f.f_globals["__name__"]]
        assert frames
        shown += [repr(list(f.f_locals.values())) for f in frames]
    assert hostile.requests[0].headers["authorization"] == f"Bearer {KEY}"
    for thing in shown:
        assert KEY not in repr(thing)
        assert KEY not in str(thing)
    for record in caplog.records:
        sent = "receive_response_headers" not in record.getMessage()  # what the server sent is its own affair
        assert not sent or KEY not in record.getMessage() + repr(record.args)


def test_secrets_in_answers_are_not_shown(hostile: Hostile, both: Both) -> None:
    made = {
        "secret": "mw_made_this_once", "uid": "key_1", "name": "ci", "role": "viewer",
        "created_at": "2026-01-02T03:04:05Z", "expires_at": None, "revoked_at": None,
    }  # fmt: skip
    hostile.play(answer(200, made))
    key = both(lambda c: c.keys.create(name="ci", role="viewer"), base_url=hostile.base_url)
    assert key.secret == "mw_made_this_once"
    assert "mw_made_this_once" not in repr(key)
    hostile.play(answer(200, {**made, "uid": 7}))
    with pytest.raises(millwright.APIResponseValidationError) as caught:
        both(lambda c: c.keys.create(name="ci", role="viewer"), base_url=hostile.base_url)
    assert "mw_made_this_once" not in str(caught.value)


def test_errors_can_be_pickled(hostile: Hostile, both: Both) -> None:
    hostile.play(problem(404, "resource_not_found"))
    with pytest.raises(millwright.NotFoundError) as caught:
        both(lambda c: c.agent.runs.retrieve("r"), base_url=hostile.base_url)
    e = pickle.loads(pickle.dumps(caught.value))
    assert type(e) is millwright.NotFoundError
    assert (str(e), e.code, e.status_code) == (str(caught.value), "resource_not_found", 404)


def test_a_raw_response(hostile: Hostile, both: Both) -> None:
    hostile.play(problem(503, "x"), answer(200, RUN, X_Request_Id="req-9", X_Custom="yes"))
    response = both(lambda c: c.agent.runs.with_raw_response.retrieve("r"), base_url=hostile.base_url)
    assert response.status_code == 200
    assert response.headers["x-custom"] == "yes"
    assert response.request_id == "req-9"
    assert response.retries_taken == 1
    assert response.json()["title"] == "A run"
    assert response.text == response.content.decode()
    assert isinstance(response.parse(), t.RunItem)
    assert response.parse(to=dict)["run_id"] == RUN["run_id"]
    assert KEY not in repr(response)


def test_a_raw_page_goes_on(hostile: Hostile, both: Both) -> None:
    pages = [
        {"runs": [RUN], "page_info": {"has_next_page": i < 2, "next_cursor": f"c{i}" if i < 2 else ""}}
        for i in range(3)
    ]
    hostile.play(*(answer(200, p) for p in pages))
    response = both(lambda c: c.agent.runs.with_raw_response.list(limit=1), base_url=hostile.base_url)
    assert len(response.parse().runs) == 1
    assert response.parse().has_next_page()


def test_undocumented_endpoints(hostile: Hostile, both: Both) -> None:
    hostile.play(problem(500, "x"), answer(200, {"a": 1}))
    assert both(
        lambda c: c.post("/new/thing", body={"b": 2}, query={"q": [1, 2]}), base_url=hostile.base_url
    ) == {"a": 1}
    first, second = hostile.requests
    assert (second.method, second.path) == ("POST", "/api/v1/new/thing?q=1&q=2")
    assert second.json() == {"b": 2}
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    for verb in ("get", "put", "patch", "delete"):
        assert both(lambda c, verb=verb: getattr(c, verb)("/x", to=dict), base_url=hostile.base_url) == {
            "a": 1
        }
        assert hostile.requests[-1].method == verb.upper()
        raw_ = both(lambda c, verb=verb: getattr(c.with_raw_response, verb)("/x"), base_url=hostile.base_url)
        assert raw_.json() == {"a": 1}
    assert both(lambda c: c.get("/x", to=bytes), base_url=hostile.base_url) == b'{"a": 1}'
    assert both(lambda c: c.put("/x", body=b"as it is"), base_url=hostile.base_url) == {"a": 1}
    assert hostile.requests[-1].body == b"as it is"
    hostile.play(answer(204, b"", ""))
    assert both(lambda c: c.delete("/x"), base_url=hostile.base_url) is None
    for path in ("http://127.0.0.1:1/elsewhere", "relative"):
        with pytest.raises(ValueError, match="below the base URL"):
            both(lambda c, path=path: c.get(path), base_url=hostile.base_url)


def test_what_is_sent(hostile: Hostile, both: Both) -> None:
    hostile.play(answer(200, CREATED))
    both(
        lambda c: c.agent.runs.create(
            prompt="tu w\u00e4s", metadata={"a": "b"}, extra_body={"new": 1}, extra_headers={"X-New": "y"}, extra_query={"z": True},
            attachments=[{"file_name": "a.bin", "mime_type": "x/y", "data": b"\x00\xff"}],
        ),
        base_url=hostile.base_url + "/",
        default_headers={"X-Team": "t"},
    )  # fmt: skip
    r = hostile.requests[0]
    assert r.path == "/api/v1/agent/runs?z=true"
    assert r.headers["content-type"] == "application/json"
    assert r.headers["user-agent"].startswith("millwright-python/")
    assert (r.headers["x-new"], r.headers["x-team"]) == ("y", "t")
    assert r.json() == {
        "prompt": "tu w\u00e4s", "metadata": {"a": "b"}, "new": 1,
        "attachments": [{"file_name": "a.bin", "mime_type": "x/y", "data": "AP8="}],
    }  # fmt: skip


def test_a_configuration_goes_round(hostile: Hostile, both: Both) -> None:
    hostile.play(
        answer(200, {**RUN, "agent_config": {"name": "n", "future": [1], "mcp_servers": {"m": {"url": "u"}}}})
    )
    run = both(lambda c: c.agent.runs.retrieve("r"), base_url=hostile.base_url)
    hostile.play(answer(200, CREATED))
    both(lambda c: c.agent.runs.create(prompt="again", config=run.agent_config), base_url=hostile.base_url)
    assert hostile.requests[-1].json() == {
        "prompt": "again", "config": {"name": "n", "future": [1], "mcp_servers": {"m": {"url": "u"}}},
    }  # fmt: skip


def test_a_name_that_is_misspelt_is_refused(both: Both) -> None:
    with pytest.raises(TypeError, match="promt"):
        both(lambda c: c.agent.runs.create(promt="do"), base_url="http://127.0.0.1:1/api/v1")


@pytest.mark.parametrize("bad", ["", ".", "..", None, 7])
def test_an_identifier_never_leads_elsewhere(hostile: Hostile, both: Both, bad: Any) -> None:
    hostile.play(answer(200, RUN))
    with pytest.raises(ValueError, match="run_id"):
        both(lambda c: c.agent.runs.retrieve(bad), base_url=hostile.base_url)
    assert hostile.requests == []
    both(lambda c: c.agent.runs.retrieve("a/../b?c#d%2e é"), base_url=hostile.base_url)
    assert hostile.requests[0].path == "/api/v1/agent/runs/a%2F..%2Fb%3Fc%23d%252e%20%C3%A9"
