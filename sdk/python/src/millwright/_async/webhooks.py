"""Webhooks of a factory, and their deliveries."""

from __future__ import annotations

from functools import cached_property

from typing_extensions import Unpack

from .. import types
from .._events import DeliveryEvent, DeliveryReader
from .._options import RequestOptions
from .._request import segment
from ._caller import AsyncCaller
from ._io import AsyncPageRequest, raw
from ._stream import AsyncEventStream
from .pagination import AsyncPage


class AsyncWebhooksPage(AsyncPage["types.Webhook", "types.ListWebhooksResponse"]):
    """A page of webhooks."""

    model, member = "ListWebhooksResponse", "webhooks"

    @property
    def webhooks(self) -> list[types.Webhook]:
        """The webhooks of this page."""
        return self.items


class AsyncDeliveriesPage(AsyncPage["types.Delivery", "types.ListDeliveriesResponse"]):
    """A page of deliveries."""

    model, member = "ListDeliveriesResponse", "deliveries"

    @property
    def deliveries(self) -> list[types.Delivery]:
        """The deliveries of this page."""
        return self.items


class AsyncDeliveries:
    """The deliveries of a webhook."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncDeliveriesWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AsyncDeliveriesWithRawResponse(self)

    def list(
        self, factory_uid: str, webhook_uid: str, **params: Unpack[types.ListDeliveriesParams]
    ) -> AsyncPageRequest[AsyncDeliveriesPage, types.Delivery]:
        """List the deliveries of a webhook, the newest first."""
        return self._client.pages(
            f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}/deliveries",
            params,
            AsyncDeliveriesPage,
            types.ListDeliveriesParams,
        )

    async def retrieve(
        self, factory_uid: str, webhook_uid: str, delivery_id: str, **options: Unpack[RequestOptions]
    ) -> types.DeliveryDetail:
        """Return one delivery with its payload and the verdict of each automation."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}/deliveries/{segment('delivery_id', delivery_id)}"
        return await self._client.call("GET", path, options, types.DeliveryDetail)

    async def replay(
        self, factory_uid: str, webhook_uid: str, delivery_id: str, **options: Unpack[RequestOptions]
    ) -> types.ReplayResponse:
        """Replay a delivery: start its runs again, as a new delivery."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}/deliveries/{segment('delivery_id', delivery_id)}/replay"
        return await self._client.call("POST", path, options, types.ReplayResponse)

    async def request(
        self, factory_uid: str, webhook_uid: str, delivery_id: str, **options: Unpack[RequestOptions]
    ) -> bytes:
        """Return an accepted delivery as it was sent, in the form of HTTP/1.1 and without credentials.

        Needs a key of role ``runner``. Its headers are there when such a key followed the deliveries as it came.
        Others wrote it: do not trust it.
        """
        path = f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}/deliveries/{segment('delivery_id', delivery_id)}/request"
        return await self._client.call("GET", path, options, bytes)

    def events(
        self,
        factory_uid: str,
        webhook_uid: str,
        *,
        last_event_id: str | None = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncEventStream[DeliveryEvent]:
        """Follow the accepted deliveries of a webhook, from now on or after an event.

        The first event confirms that the server listens. The stream has no end. A connection that drops is made
        again where it stood, up to ``max_retries`` times in a row, 5 by default, and repeats nothing.
        """
        path = f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}/deliveries/events"
        return self._client.events(path, options, DeliveryReader(), lambda _: None, last_event_id)

    stream = events


class AsyncDeliveriesWithRawResponse:
    """The deliveries of a webhook, with whole responses."""

    def __init__(self, resource: AsyncDeliveries) -> None:
        self.list = raw(resource.list)
        self.retrieve = raw(resource.retrieve)
        self.replay = raw(resource.replay)
        self.request = raw(resource.request)


class AsyncWebhooks:
    """The webhooks of a factory."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def deliveries(self) -> AsyncDeliveries:
        """The deliveries of a webhook."""
        return AsyncDeliveries(self._client)

    @cached_property
    def with_raw_response(self) -> AsyncWebhooksWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AsyncWebhooksWithRawResponse(self)

    def list(
        self, factory_uid: str, **params: Unpack[types.ListWebhooksParams]
    ) -> AsyncPageRequest[AsyncWebhooksPage, types.Webhook]:
        """List a factory's webhooks."""
        return self._client.pages(
            f"/factory/{segment('factory_uid', factory_uid)}/webhooks",
            params,
            AsyncWebhooksPage,
            types.ListWebhooksParams,
        )

    async def retrieve(
        self, factory_uid: str, webhook_uid: str, **options: Unpack[RequestOptions]
    ) -> types.Webhook:
        """Return one webhook, live or deleted."""
        path = (
            f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}"
        )
        return await self._client.call("GET", path, options, types.Webhook)

    async def create(
        self, factory_uid: str, **params: Unpack[types.CreateWebhookParams]
    ) -> types.WebhookWithSecret:
        """Create a webhook of a managed factory. Only this answer has a generated secret."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/webhooks"
        return await self._client.call(
            "POST", path, params, types.WebhookWithSecret, types.CreateWebhookParams
        )

    async def update(
        self, factory_uid: str, webhook_uid: str, **params: Unpack[types.UpdateWebhookParams]
    ) -> types.Webhook:
        """Change a webhook of a managed factory."""
        path = (
            f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}"
        )
        return await self._client.call("PATCH", path, params, types.Webhook, types.UpdateWebhookParams)

    async def delete(
        self, factory_uid: str, webhook_uid: str, **params: Unpack[types.DeleteWebhookParams]
    ) -> None:
        """Delete a webhook of a managed factory. It answers 404 from now on."""
        path = (
            f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}"
        )
        await self._client.call("DELETE", path, params, type(None), types.DeleteWebhookParams)

    async def rotate(
        self, factory_uid: str, webhook_uid: str, **params: Unpack[types.RotateSecretParams]
    ) -> types.WebhookWithSecret:
        """Rotate the secret of a webhook. The old one stops working before the call returns."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}/rotate"
        return await self._client.call(
            "POST", path, params, types.WebhookWithSecret, types.RotateSecretParams
        )


class AsyncWebhooksWithRawResponse:
    """The webhooks of a factory, with whole responses."""

    def __init__(self, resource: AsyncWebhooks) -> None:
        self.list = raw(resource.list)
        self.retrieve = raw(resource.retrieve)
        self.create = raw(resource.create)
        self.update = raw(resource.update)
        self.delete = raw(resource.delete)
        self.rotate = raw(resource.rotate)
