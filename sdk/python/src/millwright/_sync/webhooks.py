"""Webhooks of a factory, and their deliveries."""

from __future__ import annotations

from functools import cached_property

from typing_extensions import Unpack

from .. import types
from .._events import DeliveryEvent, DeliveryReader
from .._options import RequestOptions
from .._request import segment
from ._caller import Caller
from ._io import raw
from ._stream import EventStream
from .pagination import Page


class WebhooksPage(Page["types.Webhook", "types.ListWebhooksResponse"]):
    """A page of webhooks."""

    model, member = "ListWebhooksResponse", "webhooks"

    @property
    def webhooks(self) -> list[types.Webhook]:
        """The webhooks of this page."""
        return self.items


class DeliveriesPage(Page["types.Delivery", "types.ListDeliveriesResponse"]):
    """A page of deliveries."""

    model, member = "ListDeliveriesResponse", "deliveries"

    @property
    def deliveries(self) -> list[types.Delivery]:
        """The deliveries of this page."""
        return self.items


class Deliveries:
    """The deliveries of a webhook."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> DeliveriesWithRawResponse:
        """The same methods, returning headers, status and body."""
        return DeliveriesWithRawResponse(self)

    def list(
        self, factory_uid: str, webhook_uid: str, **params: Unpack[types.ListDeliveriesParams]
    ) -> DeliveriesPage:
        """List the deliveries of a webhook, the newest first."""
        return self._client.pages(
            f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}/deliveries",
            params,
            DeliveriesPage,
            types.ListDeliveriesParams,
        )

    def retrieve(
        self, factory_uid: str, webhook_uid: str, delivery_id: str, **options: Unpack[RequestOptions]
    ) -> types.DeliveryDetail:
        """Return one delivery with its payload and the verdict of each automation."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}/deliveries/{segment('delivery_id', delivery_id)}"
        return self._client.call("GET", path, options, types.DeliveryDetail)

    def replay(
        self, factory_uid: str, webhook_uid: str, delivery_id: str, **options: Unpack[RequestOptions]
    ) -> types.ReplayResponse:
        """Replay a delivery: start its runs again, as a new delivery."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}/deliveries/{segment('delivery_id', delivery_id)}/replay"
        return self._client.call("POST", path, options, types.ReplayResponse)

    def request(
        self, factory_uid: str, webhook_uid: str, delivery_id: str, **options: Unpack[RequestOptions]
    ) -> bytes:
        """Return an accepted delivery as it was sent, in the form of HTTP/1.1 and without credentials.

        Needs a key of role ``runner``. Its headers are there when such a key followed the deliveries as it came.
        Others wrote it: do not trust it.
        """
        path = f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}/deliveries/{segment('delivery_id', delivery_id)}/request"
        return self._client.call("GET", path, options, bytes)

    def events(
        self,
        factory_uid: str,
        webhook_uid: str,
        *,
        last_event_id: str | None = None,
        **options: Unpack[RequestOptions],
    ) -> EventStream[DeliveryEvent]:
        """Follow the accepted deliveries of a webhook, from now on or after an event.

        The first event confirms that the server listens. The stream has no end. A connection that drops is made
        again where it stood, up to ``max_retries`` times in a row, 5 by default, and repeats nothing.
        """
        path = f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}/deliveries/events"
        return self._client.events(path, options, DeliveryReader(), lambda _: None, last_event_id)

    stream = events


class DeliveriesWithRawResponse:
    """The deliveries of a webhook, with whole responses."""

    def __init__(self, resource: Deliveries) -> None:
        self.list = raw(resource.list)
        self.retrieve = raw(resource.retrieve)
        self.replay = raw(resource.replay)
        self.request = raw(resource.request)


class Webhooks:
    """The webhooks of a factory."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def deliveries(self) -> Deliveries:
        """The deliveries of a webhook."""
        return Deliveries(self._client)

    @cached_property
    def with_raw_response(self) -> WebhooksWithRawResponse:
        """The same methods, returning headers, status and body."""
        return WebhooksWithRawResponse(self)

    def list(self, factory_uid: str, **params: Unpack[types.ListWebhooksParams]) -> WebhooksPage:
        """List a factory's webhooks."""
        return self._client.pages(
            f"/factory/{segment('factory_uid', factory_uid)}/webhooks",
            params,
            WebhooksPage,
            types.ListWebhooksParams,
        )

    def retrieve(
        self, factory_uid: str, webhook_uid: str, **options: Unpack[RequestOptions]
    ) -> types.Webhook:
        """Return one webhook, live or deleted."""
        path = (
            f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}"
        )
        return self._client.call("GET", path, options, types.Webhook)

    def create(
        self, factory_uid: str, **params: Unpack[types.CreateWebhookParams]
    ) -> types.WebhookWithSecret:
        """Create a webhook of a managed factory. Only this answer has a generated secret."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/webhooks"
        return self._client.call("POST", path, params, types.WebhookWithSecret, types.CreateWebhookParams)

    def update(
        self, factory_uid: str, webhook_uid: str, **params: Unpack[types.UpdateWebhookParams]
    ) -> types.Webhook:
        """Change a webhook of a managed factory."""
        path = (
            f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}"
        )
        return self._client.call("PATCH", path, params, types.Webhook, types.UpdateWebhookParams)

    def delete(self, factory_uid: str, webhook_uid: str, **params: Unpack[types.DeleteWebhookParams]) -> None:
        """Delete a webhook of a managed factory. It answers 404 from now on."""
        path = (
            f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}"
        )
        self._client.call("DELETE", path, params, type(None), types.DeleteWebhookParams)

    def rotate(
        self, factory_uid: str, webhook_uid: str, **params: Unpack[types.RotateSecretParams]
    ) -> types.WebhookWithSecret:
        """Rotate the secret of a webhook. The old one stops working before the call returns."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/webhooks/{segment('webhook_uid', webhook_uid)}/rotate"
        return self._client.call("POST", path, params, types.WebhookWithSecret, types.RotateSecretParams)


class WebhooksWithRawResponse:
    """The webhooks of a factory, with whole responses."""

    def __init__(self, resource: Webhooks) -> None:
        self.list = raw(resource.list)
        self.retrieve = raw(resource.retrieve)
        self.create = raw(resource.create)
        self.update = raw(resource.update)
        self.delete = raw(resource.delete)
        self.rotate = raw(resource.rotate)
