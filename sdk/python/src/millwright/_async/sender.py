"""Sending deliveries to a webhook."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import httpx
from typing_extensions import Self, Unpack

from .._delivery import DeliveryReceipt, SenderOptions, hide_tokens, resolve_url
from .._errors import MillwrightError
from .._request import USER_AGENT, Request, encode_json
from .._response import parse
from .._retry import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT
from .._settings import certificates, checked_retries
from .._signing import checked_id, sign, signing_key
from ._transport import AsyncTransport


class AsyncWebhookSender:
    """Sends deliveries to one webhook.

    Give the webhook's ``url`` and what it authenticates senders by: ``signing_secret`` for Standard
    Webhooks signatures, ``token`` for a bearer token, or nothing for a URL that has its token in it. A
    retry sends the same bytes under the same delivery ID, so that it never starts a second run.
    """

    def __init__(
        self,
        url: str,
        *,
        signing_secret: str | None = None,
        token: str | None = None,
        timeout: float | httpx.Timeout | None = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_MAX_RETRIES,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        if signing_secret is not None and token is not None:
            raise MillwrightError(
                "give signing_secret or token, not both: a webhook has one way of authentication"
            )
        if signing_secret is not None:
            signing_key(signing_secret)
        if token is not None and not (token and all(" " <= c <= "~" for c in token)):
            raise MillwrightError("the token must be visible ASCII")
        self._url, self._where, self._url_token = resolve_url(url)
        self._secret, self._token = signing_secret, token
        self._timeout, self._retries = timeout, checked_retries(max_retries)
        http = http_client or httpx.AsyncClient(verify=certificates())
        self._transport = AsyncTransport(http, owned=http_client is None)
        if self._url_token:
            hide_tokens()

    async def send(
        self,
        payload: Any,
        *,
        delivery_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        **options: Unpack[SenderOptions],
    ) -> DeliveryReceipt:
        """Send one delivery and return the server's answer.

        ``bytes`` are sent as they are, and must be JSON; anything else is sent as JSON. ``delivery_id`` is
        the sender's own name of the event, made up when absent: a second delivery of the same name is a
        duplicate, and starts nothing. ``headers`` are sent besides.
        """
        body = payload if isinstance(payload, bytes) else encode_json(payload)
        name = checked_id(delivery_id if delivery_id is not None else f"msg_{uuid.uuid4().hex}")
        send = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": USER_AGENT}
        secret = self._secret
        if secret is None:
            send["X-Service-Delivery-Id"] = name
        if self._token is not None:
            send["Authorization"] = f"Bearer {self._token}"
        request = Request(
            method="POST",
            url=self._url,
            where=self._where,
            headers={**send, **(headers or {})},
            content=body,
            timeout=options.get("timeout", self._timeout),
            max_retries=checked_retries(options.get("max_retries", self._retries)),
            secrets=tuple(s for s in (self._token, secret, self._url_token) if s),
            sign=None if secret is None else lambda: sign(body, secret=secret, delivery_id=name),
        )
        return parse(await self._transport.send(request), DeliveryReceipt)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._where}>"
