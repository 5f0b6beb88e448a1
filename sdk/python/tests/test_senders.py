"""Signing and sending deliveries."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
from collections.abc import Awaitable
from typing import Any

import anyio
import pytest

import millwright
from millwright.webhooks import (
    AsyncWebhookSender,
    DeliveryReceipt,
    WebhookSender,
    WebhookVerificationError,
    sign,
    verify,
)

from .conftest import Both
from .hostile import Hostile, answer, problem, reset

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TOKEN = "tok-0123456789abcdef"
ACCEPTED = answer(202, {"delivery_id": "dlv_1"})


def send(both: Both, url: str, payload: Any, settings: dict[str, Any], **options: Any) -> DeliveryReceipt:
    if both.flavour == "sync":
        with WebhookSender(url, **settings) as sender:
            return sender.send(payload, **options)

    async def run() -> DeliveryReceipt:
        async with AsyncWebhookSender(url, **settings) as sender:
            value = sender.send(payload, **options)
            assert isinstance(value, Awaitable)
            return await value

    return anyio.run(run, backend=both.flavour)


def test_the_vector_of_standard_webhooks() -> None:
    headers = sign(
        b'{"test": 2432232314}',
        secret=SECRET,
        delivery_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    unprefixed = sign(
        b'{"test": 2432232314}',
        secret=SECRET[6:],
        delivery_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
    )
    assert unprefixed == headers


VECTOR = {
    "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


def test_the_vector_is_verified() -> None:
    body = b'{"test": 2432232314}'
    for at in (1614265330, 1614265630, 1614265030):
        assert verify(body, VECTOR, SECRET, now=at) == {"test": 2432232314}
    assert verify(body.decode(), VECTOR, SECRET[6:], now=1614265330)
    several = {**VECTOR, "webhook-signature": "v1,AAAA v1a,x v2,y " + VECTOR["webhook-signature"]}
    assert verify(body, several, SECRET, now=1614265330)


@pytest.mark.parametrize(
    ("change", "at", "message"),
    [
        ({}, 1614265631, "too old"),
        ({}, 1614265029, "too far in the future"),
        ({"webhook-timestamp": "1614265331"}, 1614265330, "no signature"),
        ({"webhook-timestamp": "-1"}, 1614265330, "not a number"),
        ({"webhook-timestamp": "\u0661"}, 1614265330, "not a number"),
        ({"Webhook-Id": "msg_other"}, 1614265330, "no signature"),
        ({"Webhook-Id": ""}, 1614265330, "webhook-id is missing"),
        ({"webhook-signature": "v1,!!!"}, 1614265330, "no signature"),
        (
            {"webhook-signature": "v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
            1614265330,
            "no signature",
        ),
        ({"webhook-signature": "é"}, 1614265330, "no signature"),
    ],
)
def test_what_is_not_verified(change: dict[str, str], at: int, message: str) -> None:
    with pytest.raises(WebhookVerificationError, match=message) as caught:
        verify(b'{"test": 2432232314}', {**VECTOR, **change}, SECRET, now=at)
    assert SECRET not in str(caught.value)


def test_another_body_or_secret_is_not_verified() -> None:
    with pytest.raises(WebhookVerificationError, match="no signature"):
        verify(b'{"test": 2432232315}', VECTOR, SECRET, now=1614265330)
    with pytest.raises(WebhookVerificationError, match="no signature"):
        verify(b'{"test": 2432232314}', VECTOR, "whsec_" + "QUFB" * 8, now=1614265330)
    signed = sign(b"no JSON", secret=SECRET, delivery_id="msg_1", timestamp=1614265330)
    with pytest.raises(WebhookVerificationError, match="not JSON"):
        verify(b"no JSON", signed, SECRET, now=1614265330)


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_c2hvcnQ=", "whsec_!!!notbase64!!!notbase64!!!", "whsec_" + "QUFB" * 40]
)
def test_a_secret_that_cannot_sign_is_not_shown(secret: str) -> None:
    with pytest.raises(millwright.MillwrightError, match="signing secret") as caught:
        WebhookSender("http://h/webhooks/w/wh_1", signing_secret=secret)
    assert len(secret) < 8 or secret not in str(caught.value)


@pytest.mark.parametrize("name", ["", "with space", "line\nend", "\u00e9", "a.b"])
def test_a_delivery_id_that_cannot_be_sent(name: str) -> None:
    with pytest.raises(millwright.MillwrightError, match="delivery ID"):
        sign(b"{}", secret=SECRET, delivery_id=name)


def test_a_signed_delivery(hostile: Hostile, both: Both) -> None:
    hostile.play(ACCEPTED)
    url = hostile.origin + "/webhooks/w/wh_1"
    receipt = send(both, url, {"a": "\u00e4"}, {"signing_secret": SECRET}, delivery_id="evt-1")
    assert (receipt.delivery_id, receipt.duplicate) == ("dlv_1", False)
    r = hostile.requests[0]
    assert r.path == "/webhooks/w/wh_1"
    assert json.loads(r.body) == {"a": "\u00e4"}
    assert "authorization" not in r.headers
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    signed = f"evt-1.{r.headers['webhook-timestamp']}.".encode() + r.body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert r.headers["webhook-signature"] == f"v1,{expected}"


def test_a_bearer_delivery_keeps_its_name_when_it_is_sent_again(hostile: Hostile, both: Both) -> None:
    hostile.play(
        reset(), problem(503, "x"), answer(202, {"delivery_id": "dlv_1", "duplicate": True, "new": 1})
    )
    receipt = send(both, hostile.origin + "/webhooks/w/wh_1", b"[1,  2]", {"token": TOKEN})
    assert receipt.duplicate
    assert receipt.model_extra == {"new": 1}
    assert {r.body for r in hostile.requests} == {b"[1,  2]"}
    assert {r.headers["authorization"] for r in hostile.requests} == {f"Bearer {TOKEN}"}
    names = {r.headers["x-service-delivery-id"] for r in hostile.requests}
    assert len(names) == 1
    assert len(hostile.requests) == 3


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, millwright.BadRequestError),
        (401, millwright.AuthenticationError),
        (404, millwright.NotFoundError),
        (413, millwright.PayloadTooLargeError),
    ],
)
def test_refusals(hostile: Hostile, both: Both, status: int, kind: type[Exception]) -> None:
    hostile.play(answer(status, {"error": "no"}))
    with pytest.raises(kind, match="no"):
        send(both, hostile.origin + "/webhooks/w/wh_1", {}, {"token": TOKEN})
    assert len(hostile.requests) == 1


def test_credentials_are_nowhere_to_be_seen(
    hostile: Hostile, both: Both, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for path, settings in (
        ("/webhooks/w/wh_1", {"token": TOKEN}),
        ("/webhooks/w/wh_1", {"signing_secret": SECRET}),
        ("/webhooks/w/wh_1/" + TOKEN, {}),
        ("/behind/a/proxy/webhooks/w/wh_1/" + TOKEN + "?x=y", {}),
    ):
        shown = [repr(WebhookSender(hostile.origin + path, **settings))]
        for bad in (
            answer(401, f"no {TOKEN} {SECRET}".encode(), "text/plain"),
            answer(401, {"error": TOKEN + SECRET}),
            reset(),
            ACCEPTED,
        ):
            hostile.play(bad)
            try:
                send(both, hostile.origin + path, {}, {**settings, "max_retries": 0})
            except millwright.APIError as e:
                shown += [str(e), repr(e)]
        assert hostile.requests[-1].path == path
        for credential in settings.values() or [TOKEN]:
            for text in shown:
                assert credential not in text
            assert credential not in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.example.com/webhooks/w/x",
        "ftp://h/x",
        "http://u:p@h/x",
        "http://[",
        "http://h/webhooks/w/wh_1/{token}",
    ],
)
def test_urls_that_lead_nowhere(url: str) -> None:
    with pytest.raises(millwright.MillwrightError, match="URL"):
        WebhookSender(url)


def test_one_way_of_authentication() -> None:
    with pytest.raises(millwright.MillwrightError, match="not both"):
        WebhookSender("http://h/webhooks/w/x", token="a", signing_secret=SECRET)
    with pytest.raises(millwright.MillwrightError, match="ASCII"):
        WebhookSender("http://h/webhooks/w/x", token="a\nb")
