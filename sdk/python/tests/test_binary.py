"""Every method, against the real program."""

from __future__ import annotations

import io
import re
import tarfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import standardwebhooks
import yaml

import millwright
from millwright import AsyncMillwright, Millwright
from millwright import types as t
from millwright._settings import certificates
from millwright.webhooks import AsyncWebhookSender, WebhookSender, WebhookVerificationError, verify

from .hostile import Hostile, answer
from .server import KEY, PUSH_SECRET, REPOSITORY, Server

NO_OUTPUT = "out_01j9zy0000e8q9v4m3k2n1p0rs"

DOCUMENT = yaml.safe_load((REPOSITORY / "api" / "openapi.yaml").read_text())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("server"))
    with Millwright(api_key=KEY, base_url=started.base_url) as client:
        client.secrets.set("GIT_PUSH", value=PUSH_SECRET)
    yield started
    started.stop()


class Seen:
    """The operations of the document that were called."""

    def __init__(self) -> None:
        self.called: dict[str, set[str]] = {"sync": set(), "async": set()}
        self.operations = {
            (method.upper(), re.compile(re.sub(r"\\{[^}]+\\}", lambda m: ".+" if m[0] == "\\{path\\}" else "[^/]+", re.escape(path)) + "$")): op["operationId"]
            for path, item in DOCUMENT["paths"].items()
            for method, op in item.items()
            if not op.get("deprecated")
        }  # fmt: skip

    def note(self, flavour: str, request: httpx.Request) -> None:
        path = request.url.raw_path.decode().partition("?")[0]
        if not path.startswith("/api/v1"):
            return
        found = [
            op
            for (method, pattern), op in self.operations.items()
            if method == request.method and pattern.match(path)
        ]
        self.called[flavour] |= set(found[:1])


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen()


class Api:
    """Runs the same calls on either client."""

    def __init__(self, flavour: str, server: Server, seen: Seen) -> None:
        self.flavour, self.server, self.seen = flavour, server, seen

    def __call__(self, call: Callable[[Any], Any], **settings: Any) -> Any:
        settings = {"api_key": KEY, "base_url": self.server.base_url, **settings}
        if self.flavour == "sync":
            hooks = {"request": [lambda r: self.seen.note("sync", r)]}
            with httpx.Client(event_hooks=hooks, verify=certificates()) as http:
                return call(Millwright(http_client=http, **settings))

        async def note(r: httpx.Request) -> None:
            self.seen.note("async", r)

        async def run() -> Any:
            async with httpx.AsyncClient(event_hooks={"request": [note]}, verify=certificates()) as http:
                value = call(AsyncMillwright(http_client=http, **settings))
                return await value if hasattr(value, "__await__") else value

        return anyio.run(run)

    def all(self, call: Callable[[Any], Any]) -> list[Any]:
        if self.flavour == "sync":
            return self(lambda c: list(call(c)))

        async def items(c: Any) -> list[Any]:
            return [item async for item in call(c)]

        return self(items)

    def send(self, url: str, payload: Any, *, delivery_id: str | None = None, **settings: Any) -> Any:
        if self.flavour == "sync":
            with WebhookSender(url, **settings) as sender:
                return sender.send(payload, delivery_id=delivery_id)

        async def run() -> Any:
            async with AsyncWebhookSender(url, **settings) as sender:
                return await sender.send(payload, delivery_id=delivery_id)

        return anyio.run(run)

    def factory(self, name: str) -> t.Factory:
        return next(f for f in self.all(lambda c: c.factories.list()) if f.name == name)

    def webhook(self, factory: str, name: str) -> t.Webhook:
        uid = self.factory(factory).uid
        return next(w for w in self.all(lambda c: c.factories.webhooks.list(uid)) if w.name == name)

    def ended(self, run_id: str) -> t.RunItem:
        return self(lambda c: c.agent.runs.wait(run_id, max_wait=60))


@pytest.fixture(params=["sync", "async"])
def api(request: pytest.FixtureRequest, server: Server, seen: Seen) -> Api:
    return Api(request.param, server, seen)


def once(api: Api, name: str) -> str:
    """A name that no other test uses."""
    return f"{name}-{api.flavour}-{time.monotonic_ns()}"


def test_a_run_from_its_creation_to_its_end(api: Api) -> None:
    name = once(api, "life")
    made = api(
        lambda c: c.agent.runs.create(
            prompt="Say hello", title="A greeting", config={"name": name, "model_id": "m-1", "mcp_servers": {"a": {"url": "http://x", "headers": {"k": "v"}}}, "future": 1},
            metadata={"team": "payments"}, attachments=[{"file_name": "note.txt", "mime_type": "text/plain", "data": b"h\xc3\xa4\n"}],
        )
    )  # fmt: skip
    assert isinstance(made, t.RunAgentResponse)
    assert (made.task_id, made.state) == (made.run_id, "QUEUED")
    run = api.ended(made.run_id)
    assert isinstance(run, t.RunItem)
    assert (run.state, run.title, run.prompt, run.source) == ("SUCCEEDED", "A greeting", "Say hello", "API")
    assert isinstance(run.created_at, datetime)
    assert run.started_at is not None
    assert run.finished_at is not None
    assert run.started_at <= run.finished_at
    assert run.creator.type == "service_account"
    assert run.session_link.startswith(api.server.origin)
    assert run.metadata == {"team": "payments"}
    assert run.agent_config.name == name
    assert run.agent_config.future == 1
    assert run.agent_config.mcp_servers is not None
    assert run.agent_config.mcp_servers["a"].headers == {"k": "***"}
    assert [(a.file_name, a.size_bytes) for a in run.attachments] == [("note.txt", 4)]
    assert api(lambda c: c.agent.runs.attachment(made.run_id, "note.txt")) == b"h\xc3\xa4\n"

    said = api(lambda c: c.agent.runs.conversation(made.run_id))
    assert isinstance(said, t.Conversation)
    assert said.conversation_id == run.conversation_id
    assert [m.role for m in said.steps[0].messages] == ["user", "assistant"]
    assert said.steps[0].messages[0].content[0].text == "Say hello"
    assert api(lambda c: c.agent.conversations.retrieve(run.conversation_id)).steps == said.steps

    events = api.all(lambda c: c.agent.runs.events(made.run_id))
    assert [e.state.state for e in events if e.state] == ["QUEUED", "CLAIMED", "INPROGRESS", "SUCCEEDED"]
    assert [e.message.role for e in events if e.message] == ["user", "assistant"]
    rest = api.all(lambda c: c.agent.runs.events(made.run_id, last_event_id=events[-2].id))
    assert [e.state.state for e in rest] == ["SUCCEEDED"]
    assert api.all(lambda c: c.agent.runs.stream(made.run_id, last_event_id=events[-1].id)) == []


def test_lists_of_runs(api: Api) -> None:
    name = once(api, "list")
    before = datetime.now(timezone.utc) - timedelta(minutes=1)
    body = {"prompt": "x", "config": {"name": name}}
    ids = [api(lambda c, i=i: c.agent.runs.create(**body, metadata={"n": str(i)})).run_id for i in range(5)]
    found = api.all(
        lambda c: c.agent.runs.list(
            name=name, limit=2, sort_by="created_at", sort_order="asc", created_after=before
        )
    )
    assert [r.run_id for r in found] == ids
    page = api(lambda c: c.agent.runs.list(name=name, limit=2))
    assert isinstance(page.response, t.ListRunsResponse)
    assert (len(page.runs), page.has_next_page()) == (2, True)
    assert isinstance(page.page_info, t.PageInfo)
    picked = api.all(
        lambda c: c.agent.runs.list(
            name=name,
            metadata={"n": "3"},
            source="API",
            state=["QUEUED", "CLAIMED", "INPROGRESS", "SUCCEEDED"],
        )
    )
    assert [r.run_id for r in picked] == [ids[3]]
    assert api.all(lambda c: c.agent.runs.list(name=name, state="BLOCKED")) == []
    with pytest.raises(millwright.BadRequestError) as caught:
        api(lambda c: c.agent.runs.list(limit=0))
    assert [e["field"] for e in caught.value.errors] == ["limit"]


def test_a_retried_create_starts_one_run(api: Api) -> None:
    name, key = once(api, "idem"), once(api, "key")
    runs = {
        api(lambda c: c.agent.runs.create(prompt="x", config={"name": name}, idempotency_key=key)).run_id
        for _ in range(3)
    }
    assert len(runs) == 1
    assert len(api.all(lambda c: c.agent.runs.list(name=name))) == 1
    with pytest.raises(millwright.ConflictError) as caught:
        api(lambda c: c.agent.runs.create(prompt="another", config={"name": name}, idempotency_key=key))
    assert not caught.value.retryable


def test_a_run_is_cancelled_followed_and_continued(api: Api) -> None:
    run_id = api(lambda c: c.agent.runs.create(prompt="work", config={"harness": {"type": "slow"}})).run_id
    with pytest.raises(millwright.RunWaitTimeoutError):
        api(lambda c: c.agent.runs.wait(run_id, max_wait=2))

    def one(c: Any) -> list[str]:
        found = []
        with c.agent.runs.events(run_id) as stream:
            for event in stream:
                if event.state:
                    found.append(event.state.state)
                if event.message and event.message.role == "assistant":
                    assert c.agent.runs.cancel(run_id) == run_id
        return found

    async def other(c: Any) -> list[str]:
        found = []
        async with c.agent.runs.events(run_id) as stream:
            async for event in stream:
                if event.state:
                    found.append(event.state.state)
                if event.message and event.message.role == "assistant":
                    assert await c.agent.runs.cancel(run_id) == run_id
        return found

    assert api(one if api.flavour == "sync" else other) == ["QUEUED", "CLAIMED", "INPROGRESS", "CANCELLED"]
    with pytest.raises(millwright.BadRequestError):
        api(lambda c: c.agent.runs.cancel(run_id))
    again = api(lambda c: c.agent.runs.retry(run_id)).run_id
    assert again != run_id
    assert api(lambda c: c.agent.runs.cancel(again)) == again

    run_id = api(lambda c: c.agent.runs.create(prompt="work", config={"harness": {"type": "ask"}})).run_id
    assert api.ended(run_id).state == "BLOCKED"
    with pytest.raises(millwright.NotFoundError):  # this agent waits without a question
        api(lambda c: c.agent.runs.answer(run_id, question_id="qst_x", choice="approve"))
    answer = api(lambda c: c.agent.runs.submit_followup(run_id, message="go on"))
    assert isinstance(answer, t.RunFollowupResponse)
    assert answer.outcome == "handoff_execution"
    assert api.ended(run_id).state == "BLOCKED"
    assert len(api(lambda c: c.agent.runs.conversation(run_id)).steps) == 2

    conversation_id = api(lambda c: c.agent.runs.retrieve(run_id)).conversation_id
    again = api(lambda c: c.agent.conversations.submit_followup(conversation_id, message="and on"))
    assert isinstance(again, t.ConversationFollowupResponse)
    assert (again.run_id, again.outcome) == (run_id, "handoff_execution")
    api.ended(run_id)
    assert api(lambda c: c.agent.runs.outputs(run_id)).outputs == []
    for refused in (
        lambda c: c.agent.runs.open_pull_request(run_id, title="Mend"),
        lambda c: c.agent.runs.approve_output(run_id, NO_OUTPUT),
        lambda c: c.agent.runs.reject_output(run_id, NO_OUTPUT),
        lambda c: c.agent.runs.retry_output(run_id, NO_OUTPUT),
    ):
        with pytest.raises((millwright.ConflictError, millwright.NotFoundError)):
            api(refused)
    events = api(lambda c: c.agent.runs.timeline(run_id)).events
    assert [e.event_type for e in events][:4] == [
        "oz_run_created",
        "oz_run_claimed",
        "agent_started",
        "oz_run_blocked",
    ]
    assert events[-1].execution_id == 3
    assert b"and on" in api(lambda c: c.agent.runs.transcript(run_id))
    assert b"and on" in api(lambda c: c.agent.conversations.transcript(conversation_id))


def test_what_definitions_have(api: Api) -> None:
    assert isinstance(api(lambda c: c.agent.models()), t.ListModelsResponse)
    assert isinstance(api(lambda c: c.agent.environments(sort_by="name")), t.ListEnvironmentsResponse)
    assert api(lambda c: c.agent.skills.defined(repo="no/where")).agents == []
    assert api(lambda c: c.agent.identities.list(factory_uid="fac_none")).agents == []
    with pytest.raises(millwright.NotFoundError):
        api(lambda c: c.agent.identities.retrieve("agt_none"))
    assert isinstance(api(lambda c: c.agent.schedules.list()), t.ListSchedulesResponse)
    with pytest.raises(millwright.NotFoundError):
        api(lambda c: c.agent.schedules.retrieve("none"))


def test_what_runs_left(api: Api) -> None:
    made = api(lambda c: c.agent.runs.create(prompt="x", config={"harness": {"type": "leave"}}))
    run = api.ended(made.run_id)
    assert [(a.artifact_type, a.data.filename, a.data.size_bytes) for a in run.artifacts] == [
        ("FILE", "note.txt", 6)
    ]
    uid = run.artifacts[0].data.artifact_uid
    artifact = api(lambda c: c.agent.artifacts.retrieve(uid))
    assert isinstance(artifact, t.Artifact)
    assert (artifact.run_id, artifact.data.content_type) == (made.run_id, "text/plain; charset=utf-8")
    assert api(lambda c: c.agent.artifacts.download(uid)) == b"h\xc3\xa4ha\n"
    ids = [r.run_id for r in api.all(lambda c: c.agent.runs.list(artifact_type="FILE"))]
    assert made.run_id in ids
    with pytest.raises(millwright.NotFoundError):
        api(lambda c: c.agent.artifacts.retrieve("art_none"))


def test_errors_of_the_api(api: Api) -> None:
    with pytest.raises(millwright.NotFoundError) as caught:
        api(lambda c: c.agent.runs.retrieve("0199d3a4-0000-7000-8000-000000000001"))
    assert (caught.value.status_code, caught.value.code, caught.value.retryable) == (
        404,
        "resource_not_found",
        False,
    )
    assert caught.value.request_id
    with pytest.raises(millwright.BadRequestError) as bad:
        api(lambda c: c.agent.runs.create(prompt="x", config={"skill_spec": "nonsense"}))
    assert [e["field"] for e in bad.value.errors] == ["config.skill_spec"]
    with pytest.raises(millwright.AuthenticationError):
        api(lambda c: c.agent.runs.list(), api_key="mw_unknown")
    key = api(lambda c: c.keys.create(name=once(api, "reader"), role="viewer")).secret
    with pytest.raises(millwright.PermissionDeniedError):
        api(lambda c: c.agent.runs.create(prompt="x"), api_key=key)
    with pytest.raises(millwright.APIStatusError) as caught_any:
        api(lambda c: c.post("/agent/skills"))
    assert caught_any.value.status_code == 405
    with pytest.raises(millwright.PayloadTooLargeError):
        api(lambda c: c.agent.runs.create(prompt="x" * (9 << 20)))


def test_raw_responses_and_other_endpoints(api: Api) -> None:
    response = api(lambda c: c.agent.skills.with_raw_response.list())
    assert response.status_code == 200
    assert response.request_id == response.headers["X-Request-Id"]
    assert response.parse().skills[0].id
    assert response.json()["skills"]
    assert len(api(lambda c: c.agent.skills.list()).skills) == 14
    assert b"openapi: 3.1" in api(lambda c: c.get("/openapi.yaml", to=bytes))
    assert isinstance(api(lambda c: c.get("/agent/skills", to=t.BundledSkills)), t.BundledSkills)
    made = api(lambda c: c.post("/agent/runs", body={"prompt": "by hand"}, to=t.RunAgentResponse))
    assert made.state == "QUEUED"


def test_a_factory(api: Api) -> None:
    demo = api.factory("demo")
    assert isinstance(demo, t.Factory)
    assert [f.name for f in api.all(lambda c: c.factories.list(search="DEM"))] == ["demo"]
    same = api(lambda c: c.factories.retrieve(demo.uid))
    assert (same.uid, same.source.kind, same.counts.webhooks, same.counts.automations) == (
        demo.uid,
        "dir",
        3,
        3,
    )
    assert same.sync.state == "applied"
    syncs = api.all(lambda c: c.factories.syncs.list(demo.uid, limit=1))
    assert isinstance(syncs[0], t.Sync)
    again = api(lambda c: c.factories.sync(demo.uid))
    assert again.outcome in ("applied", "unchanged")
    assert len(api(lambda c: c.factories.applied(demo.uid)).revisions) == 1
    with pytest.raises(millwright.ConflictError):
        api(lambda c: c.factories.rollback(demo.uid, dry_run=True))
    with pytest.raises(millwright.ConflictError):
        api(lambda c: c.factories.resume(demo.uid))
    plan = api(lambda c: c.factories.plan(demo.uid))
    assert isinstance(plan, t.Plan)
    assert plan.would_apply
    wrong = api(
        lambda c: c.factories.plan(
            demo.uid, files=[{"path": "webhooks/ci.yaml", "content": "authMode: tokn\n"}]
        )
    )
    assert not wrong.would_apply
    assert wrong.problems[0].path == "webhooks/ci.yaml"
    automations = api.all(lambda c: c.factories.automations.list(demo.uid))
    assert {a.name for a in automations} == {
        "investigate-outage",
        "review-pull-request",
        "triage-failed-build",
    }
    flow = api(lambda c: c.factories.automations.flow(demo.uid, automations[0].uid))
    assert (flow.waiting, flow.skipped, flow.conversations) == ([], [], [])
    dropped = api(lambda c: c.factories.automations.drop_waiting(demo.uid, automations[0].name))
    assert dropped.run_ids == []
    made = api(lambda c: c.factories.runs.create(demo.uid, prompt="Look into it", ticket_ref="T-1"))
    assert isinstance(made, t.FactoryRunResponse)
    assert (made.factory_uid, made.ticket_ref) == (demo.uid, "T-1")
    assert api.ended(made.run_id).factory_uid == demo.uid
    webhook = api.webhook("demo", "ci")
    with pytest.raises(millwright.UnprocessableEntityError) as caught:
        api(lambda c: c.factories.webhooks.delete(demo.uid, webhook.uid))
    assert caught.value.code == "operation_not_supported"


def test_a_push_notice(api: Api) -> None:
    uid = api.factory("repo").uid
    headers = {
        "X-Gitlab-Token": PUSH_SECRET,
        "X-Gitlab-Event": "Push Hook",
        "Content-Type": "application/json",
    }
    assert api(lambda c: c.factories.notify_push(uid, b'{"ref": "refs/heads/main"}', headers=headers)) is None
    with pytest.raises(millwright.AuthenticationError):
        api(lambda c: c.factories.notify_push(uid, b"{}", headers={**headers, "X-Gitlab-Token": "wrong"}))


def test_webhooks_and_deliveries(api: Api) -> None:
    demo, webhook = api.factory("demo"), api.webhook("demo", "ci")
    assert isinstance(webhook, t.Webhook)
    assert api(lambda c: c.factories.webhooks.retrieve(demo.uid, webhook.uid)).uid == webhook.uid
    name = once(api, "build")
    token = api.server.secrets["CI_TOKEN"]
    payload = {"status": "failed", "branch": "main", "build": name}
    receipt = api.send(webhook.ingress_url, payload, delivery_id=name, token=token)
    assert not receipt.duplicate
    repeat = api.send(webhook.ingress_url, payload, delivery_id=name, token=token)
    assert (repeat.duplicate, repeat.delivery_id) == (True, receipt.delivery_id)
    with pytest.raises(millwright.AuthenticationError):
        api.send(webhook.ingress_url, payload, token="wrong", max_retries=0)
    with pytest.raises(millwright.BadRequestError):
        api.send(webhook.ingress_url, b"{", token=token)
    with pytest.raises(millwright.PayloadTooLargeError):
        api.send(webhook.ingress_url, "x" * 262_144, token=token)

    log = api.all(lambda c: c.factories.webhooks.deliveries.list(demo.uid, webhook.uid, limit=2))
    assert {d.outcome for d in log} >= {
        "accepted",
        "duplicate",
        "rejected_auth",
        "rejected_invalid_json",
        "rejected_too_large",
    }
    accepted = api.all(
        lambda c: c.factories.webhooks.deliveries.list(demo.uid, webhook.uid, outcome="accepted")
    )
    assert accepted[0].delivery_id == receipt.delivery_id
    detail = api(
        lambda c: c.factories.webhooks.deliveries.retrieve(demo.uid, webhook.uid, receipt.delivery_id)
    )
    assert isinstance(detail, t.DeliveryDetail)
    assert detail.payload == payload
    assert {v.verdict for v in detail.automations} == {"matched"}
    run = api.ended(detail.runs[0].run_id)
    assert (run.source, run.metadata["delivery_id"]) == ("CUSTOM_WEBHOOK", receipt.delivery_id)
    assert api(lambda c: c.agent.runs.attachment(run.run_id, "event-payload.json"))
    again = api(lambda c: c.factories.webhooks.deliveries.replay(demo.uid, webhook.uid, receipt.delivery_id))
    assert isinstance(again, t.ReplayResponse)
    assert again.replay_of == receipt.delivery_id
    verdict = api(
        lambda c: c.factories.test_filter(
            demo.uid,
            filter={"status": ["failed"]},
            delivery_id=receipt.delivery_id,
            webhook_ids=[webhook.uid],
        )
    )
    assert isinstance(verdict, t.FilterTestResponse)
    assert verdict.would_trigger

    uptime = api.webhook("demo", "uptime")
    assert "{token}" in uptime.ingress_url
    url = uptime.ingress_url.replace("{token}", api.server.secrets["UPTIME_TOKEN"])
    assert api.send(url, {"service": name, "state": "up"}).delivery_id.startswith("dlv_")


def test_deliveries_are_followed(api: Api) -> None:
    demo, webhook = api.factory("demo"), api.webhook("demo", "ci")
    name, settings = once(api, "follow"), {"token": api.server.secrets["CI_TOKEN"]}
    of = (demo.uid, webhook.uid)

    def one(c: Any) -> Any:
        with c.factories.webhooks.deliveries.events(*of) as events:
            for event in events:
                if event.delivery:
                    return event, c.factories.webhooks.deliveries.request(*of, event.delivery.delivery_id)
                assert event.event == "listening"
                api.send(webhook.ingress_url, {"build": name}, **settings)
        raise AssertionError("the stream ended")

    async def other(c: Any) -> Any:
        async with (
            c.factories.webhooks.deliveries.stream(*of) as events,
            AsyncWebhookSender(webhook.ingress_url, **settings) as s,
        ):
            async for event in events:
                if event.delivery:
                    return event, await c.factories.webhooks.deliveries.request(
                        *of, event.delivery.delivery_id
                    )
                await s.send({"build": name})
        raise AssertionError("the stream ended")

    event, request = api(one if api.flavour == "sync" else other)
    assert isinstance(event.delivery, t.Delivery)
    assert event.id == event.delivery.delivery_id
    assert request.startswith(b"POST /webhooks/w/")
    assert name.encode() in request
    assert settings["token"].encode() not in request


def test_a_managed_factory(api: Api) -> None:
    ops, name = api.factory("ops"), once(api, "hook")
    made = api(
        lambda c: c.factories.webhooks.create(
            ops.uid, name=name, auth_mode="signature", signature_scheme="standard_webhooks"
        )
    )
    assert isinstance(made, t.WebhookWithSecret)
    assert made.secret
    receipt = api.send(made.ingress_url, {"a": 1}, signing_secret=made.secret)
    assert receipt.delivery_id.startswith("dlv_")

    rotated = api(lambda c: c.factories.webhooks.rotate(ops.uid, made.uid))
    assert rotated.secret
    with pytest.raises(millwright.AuthenticationError):
        api.send(made.ingress_url, {"a": 2}, signing_secret=made.secret)
    assert api.send(made.ingress_url, {"a": 2}, signing_secret=rotated.secret).delivery_id

    off = api(lambda c: c.factories.webhooks.update(ops.uid, made.uid, enabled=False))
    assert off.enabled is False
    with pytest.raises(millwright.NotFoundError):
        api.send(made.ingress_url, {"a": 3}, signing_secret=rotated.secret)
    assert api(lambda c: c.factories.webhooks.delete(ops.uid, made.uid, delete_secret=True)) is None
    assert made.uid not in [w.uid for w in api.all(lambda c: c.factories.webhooks.list(ops.uid))]
    gone = api.all(lambda c: c.factories.webhooks.list(ops.uid, include_deleted=True))
    assert next(w for w in gone if w.uid == made.uid).deleted_at is not None

    path = f"automations/{name}/automation.md"
    text = "---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    schedule:\n      cron: '0 9 * * 1'\n---\nLook around.\n"
    written = api(lambda c: c.factories.files.put(ops.uid, path, content=text))
    assert isinstance(written, t.Sync)
    assert written.outcome == "applied"
    assert name in [a.name for a in api.all(lambda c: c.factories.automations.list(ops.uid))]
    held = api(lambda c: c.factories.files.retrieve(ops.uid, path))
    assert isinstance(held, t.FileContent)
    assert held.content == text
    api(lambda c: c.factories.files.put(ops.uid, path, content=text + "More.\n", base_revision=held.revision))
    with pytest.raises(millwright.ConflictError):
        api(lambda c: c.factories.files.put(ops.uid, path, content=text, base_revision=held.revision))
    assert api(lambda c: c.factories.files.delete(ops.uid, path)).outcome == "applied"
    assert path not in [f.path for f in api.all(lambda c: c.factories.files.list(ops.uid, limit=1))]

    revisions = api.all(lambda c: c.factories.revisions.list(ops.uid, limit=2))
    assert isinstance(revisions[0], t.Revision)
    changed = api(lambda c: c.factories.revisions.retrieve(ops.uid, revisions[0].revision))
    assert isinstance(changed, t.RevisionWithDifference)
    assert [f.path for f in changed.files] == [path]
    assert api(lambda c: c.factories.revisions.restore(ops.uid, held.revision)).outcome == "applied"
    assert api(lambda c: c.factories.files.retrieve(ops.uid, path)).content == text
    tar = api(lambda c: c.factories.files.export_tar(ops.uid))
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        files = [
            {"path": m.name, "content": archive.extractfile(m).read().decode()} for m in archive if m.isfile()
        ]
    assert path in [f["path"] for f in files]
    assert api(lambda c: c.factories.files.import_tar(ops.uid, tar)).outcome in ("applied", "unchanged")
    rest = [f for f in files if f["path"] != path]
    assert (
        api(lambda c: c.factories.files.replace(ops.uid, files=rest, allow_prune=True)).outcome == "applied"
    )


def test_secrets(api: Api) -> None:
    name = once(api, "SECRET").replace("-", "_").upper()
    stored = api(lambda c: c.secrets.set(name, value="a value"))
    assert isinstance(stored, t.Secret)
    assert (stored.name, stored.version, stored.pending) == (name, 1, False)
    assert api(lambda c: c.secrets.set(name, value="another")).version == 2
    assert name in [s.name for s in api.all(lambda c: c.secrets.list(limit=1))]
    assert api(lambda c: c.secrets.delete(name)) is None
    assert api(lambda c: c.secrets.set(name, pending=True)).pending
    api(lambda c: c.secrets.delete(name))
    with pytest.raises(millwright.ConflictError):
        api(lambda c: c.secrets.delete("CI_TOKEN"))
    with pytest.raises(millwright.BadRequestError):
        api(lambda c: c.secrets.set(name, value=""))


def test_keys(api: Api) -> None:
    name = once(api, "key")
    made = api(
        lambda c: c.keys.create(
            name=name, role="runner", expires_at=datetime.now(timezone.utc) + timedelta(hours=1)
        )
    )
    assert isinstance(made, t.CreatedAPIKey)
    assert made.secret.startswith("mw_")
    assert made.secret not in repr(made)
    assert made.uid in [k.uid for k in api.all(lambda c: c.keys.list(limit=2))]
    api(lambda c: c.agent.skills.list(), api_key=made.secret)
    assert api(lambda c: c.keys.revoke(made.uid)) is None
    with pytest.raises(millwright.AuthenticationError):
        api(lambda c: c.agent.skills.list(), api_key=made.secret)


def test_notifications(api: Api) -> None:
    ops = api.factory("ops").uid
    name = once(api, "told")
    api(lambda c: c.secrets.set("TOLD_SECRET", value="whsec_" + "QUFB" * 8))
    text = "url: https://127.0.0.1:1\nsecretName: TOLD_SECRET\nevents: [run.failed]\n"
    api(lambda c: c.factories.files.put(ops, f"notifications/{name}.yaml", content=text))
    assert name in {n.name for n in api.all(lambda c: c.factories.notifications.list(ops, limit=1))}
    event = api(lambda c: c.factories.notifications.test(ops, name))
    assert isinstance(event, t.Event)
    detail = api(lambda c: c.factories.notifications.event(ops, event.event_uid))
    assert isinstance(detail, t.EventDetail)
    assert detail.type == "notification.test"
    with pytest.raises(millwright.ConflictError):
        api(lambda c: c.factories.notifications.replay(ops, event.event_uid))
    told = api.all(lambda c: c.factories.notifications.events(ops, notification=name, limit=1))
    assert [e.event_uid for e in told] == [event.event_uid]
    dead = api(lambda c: c.factories.notifications.replay_dead(ops, name))
    assert isinstance(dead, t.ReplayEventsResponse)
    assert dead.replayed == 0
    api(lambda c: c.factories.files.delete(ops, f"notifications/{name}.yaml"))


def test_an_event_is_verified(api: Api, hostile: Hostile) -> None:
    """By the library that Standard Webhooks publishes, and by this package."""
    ops = api.factory("ops").uid
    name, secret = once(api, "verified"), "whsec_" + "QUJD" * 8
    hostile.play(answer(204))
    api(lambda c: c.secrets.set("VERIFIED_SECRET", value=secret))
    text = f"url: {hostile.origin}/in\nsecretName: VERIFIED_SECRET\nevents: [run.failed]\n"
    api(lambda c: c.factories.files.put(ops, f"notifications/{name}.yaml", content=text))
    event = api(lambda c: c.factories.notifications.test(ops, name))
    got = hostile.received(1)[0]
    assert got.headers["webhook-id"] == event.event_uid
    assert standardwebhooks.Webhook(secret).verify(got.body, got.headers)["type"] == "notification.test"
    assert verify(got.body, got.headers, secret)["type"] == "notification.test"
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(secret).verify(got.body + b" ", got.headers)
    with pytest.raises(WebhookVerificationError):
        verify(got.body + b" ", got.headers, secret)
    api(lambda c: c.factories.files.delete(ops, f"notifications/{name}.yaml"))


def test_workers(api: Api) -> None:
    workers = api.all(lambda c: c.workers.list(limit=1))
    assert all(w.busy <= w.slots for w in workers)


def test_audit(api: Api) -> None:
    changes = api.all(lambda c: c.audit.list(action="key", limit=1))
    assert changes
    assert all(e.action.startswith("key.") for e in changes)


def test_definition_files(api: Api) -> None:
    tree: list[t.DefinitionFile] = [
        {"path": str(f.relative_to(root)), "content": f.read_text()}
        for root in [Path(api.server.log).parent / "demo"]
        for f in root.rglob("*")
        if f.is_file()
    ]
    good = api(lambda c: c.factory_files.validate(files=tree))
    assert isinstance(good, t.ValidateFilesResponse)
    assert good.valid
    bad = api(
        lambda c: c.factory_files.validate(files=[{"path": "webhooks/x.yaml", "content": "authMod: token\n"}])
    )
    assert not bad.valid
    assert bad.diagnostics[0].path == "webhooks/x.yaml"
    versions = api(lambda c: c.factory_files.schemas.list())
    assert isinstance(versions, t.SchemaVersions)
    documents = api(lambda c: c.factory_files.schemas.retrieve(versions.current_version))
    assert isinstance(documents, t.SchemaDocuments)
    one = api(lambda c: c.factory_files.schemas.document(versions.current_version, "webhook"))
    assert one == documents.documents["webhook"]


def test_no_answer_has_members_that_the_types_do_not_know(api: Api, seen: Seen) -> None:
    """The document and the server agree: what is answered has a field in the model."""
    known_loose = {t.AmbientAgentConfig, t.MCPServerConfig}

    def strangers(value: Any) -> Iterator[str]:
        if isinstance(value, list):
            for item in value:
                yield from strangers(item)
        elif isinstance(value, dict):
            yield from strangers(list(value.values()))
        elif isinstance(value, millwright._model.Model):  # type: ignore[attr-defined]
            if type(value) not in known_loose:
                yield from (f"{type(value).__name__}.{name}" for name in value.model_extra or {})
            yield from strangers(list(vars(value).values()))

    demo, webhook = api.factory("demo"), api.webhook("demo", "ci")
    answers = [
        api.all(lambda c: c.factories.list()), api.all(lambda c: c.agent.runs.list(limit=500)), api.all(lambda c: c.keys.list()),
        api.all(lambda c: c.factories.webhooks.list(demo.uid)), api.all(lambda c: c.factories.syncs.list(demo.uid)),
        api.all(lambda c: c.factories.webhooks.deliveries.list(demo.uid, webhook.uid)), api.all(lambda c: c.secrets.list()),
        api.all(lambda c: c.factories.automations.list(demo.uid)), api(lambda c: c.factories.plan(demo.uid)),
    ]  # fmt: skip
    assert sorted(set(strangers(answers))) == []


def test_every_operation_of_the_document_was_called(seen: Seen) -> None:
    """Comes last: an endpoint without a method, or a method without a test, is found here."""
    for flavour, called in seen.called.items():
        assert sorted(set(seen.operations.values()) - called) == [], flavour
