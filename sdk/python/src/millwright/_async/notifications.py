"""Notifications of a factory, and their events."""

from __future__ import annotations

from functools import cached_property

from typing_extensions import Unpack

from .. import types
from .._options import RequestOptions
from .._request import segment
from ._caller import AsyncCaller
from ._io import AsyncPageRequest, raw
from .pagination import AsyncPage


class AsyncNotificationsPage(AsyncPage["types.Notification", "types.ListNotificationsResponse"]):
    """A page of notifications."""

    model, member = "ListNotificationsResponse", "notifications"

    @property
    def notifications(self) -> list[types.Notification]:
        """The notifications of this page."""
        return self.items


class AsyncEventsPage(AsyncPage["types.Event", "types.ListEventsResponse"]):
    """A page of events."""

    model, member = "ListEventsResponse", "events"

    @property
    def events(self) -> list[types.Event]:
        """The events of this page."""
        return self.items


class AsyncNotifications:
    """The notifications of a factory, and their events."""

    def __init__(self, client: AsyncCaller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> AsyncNotificationsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return AsyncNotificationsWithRawResponse(self)

    def list(
        self, factory_uid: str, **params: Unpack[types.ListNotificationsParams]
    ) -> AsyncPageRequest[AsyncNotificationsPage, types.Notification]:
        """List a factory's notifications."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/notifications"
        return self._client.pages(path, params, AsyncNotificationsPage, types.ListNotificationsParams)

    async def test(self, factory_uid: str, name: str, **options: Unpack[RequestOptions]) -> types.Event:
        """Send a test event."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/notifications/{segment('name', name)}/test"
        return await self._client.call("POST", path, options, types.Event)

    async def replay_dead(
        self, factory_uid: str, name: str, **options: Unpack[RequestOptions]
    ) -> types.ReplayEventsResponse:
        """Send the dead events of a notification again."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/notifications/{segment('name', name)}/replay"
        return await self._client.call("POST", path, options, types.ReplayEventsResponse)

    def events(
        self, factory_uid: str, **params: Unpack[types.ListEventsParams]
    ) -> AsyncPageRequest[AsyncEventsPage, types.Event]:
        """List the events for receivers outside, the newest first."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/events"
        return self._client.pages(path, params, AsyncEventsPage, types.ListEventsParams)

    async def event(
        self, factory_uid: str, event_uid: str, **options: Unpack[RequestOptions]
    ) -> types.EventDetail:
        """Return an event with its attempts."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/events/{segment('event_uid', event_uid)}"
        return await self._client.call("GET", path, options, types.EventDetail)

    async def replay(
        self, factory_uid: str, event_uid: str, **options: Unpack[RequestOptions]
    ) -> types.Event:
        """Send an event again that is dead or was sent."""
        path = (
            f"/factory/{segment('factory_uid', factory_uid)}/events/{segment('event_uid', event_uid)}/replay"
        )
        return await self._client.call("POST", path, options, types.Event)


class AsyncNotificationsWithRawResponse:
    """The notifications of a factory, with whole responses."""

    def __init__(self, resource: AsyncNotifications) -> None:
        self.list = raw(resource.list)
        self.test = raw(resource.test)
        self.replay_dead = raw(resource.replay_dead)
        self.events = raw(resource.events)
        self.event = raw(resource.event)
        self.replay = raw(resource.replay)
