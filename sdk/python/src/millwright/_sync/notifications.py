"""Notifications of a factory, and their events."""

from __future__ import annotations

from functools import cached_property

from typing_extensions import Unpack

from .. import types
from .._options import RequestOptions
from .._request import segment
from ._caller import Caller
from ._io import raw
from .pagination import Page


class NotificationsPage(Page["types.Notification", "types.ListNotificationsResponse"]):
    """A page of notifications."""

    model, member = "ListNotificationsResponse", "notifications"

    @property
    def notifications(self) -> list[types.Notification]:
        """The notifications of this page."""
        return self.items


class EventsPage(Page["types.Event", "types.ListEventsResponse"]):
    """A page of events."""

    model, member = "ListEventsResponse", "events"

    @property
    def events(self) -> list[types.Event]:
        """The events of this page."""
        return self.items


class Notifications:
    """The notifications of a factory, and their events."""

    def __init__(self, client: Caller) -> None:
        self._client = client

    @cached_property
    def with_raw_response(self) -> NotificationsWithRawResponse:
        """The same methods, returning headers, status and body."""
        return NotificationsWithRawResponse(self)

    def list(self, factory_uid: str, **params: Unpack[types.ListNotificationsParams]) -> NotificationsPage:
        """List a factory's notifications."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/notifications"
        return self._client.pages(path, params, NotificationsPage, types.ListNotificationsParams)

    def test(self, factory_uid: str, name: str, **options: Unpack[RequestOptions]) -> types.Event:
        """Send a test event."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/notifications/{segment('name', name)}/test"
        return self._client.call("POST", path, options, types.Event)

    def replay_dead(
        self, factory_uid: str, name: str, **options: Unpack[RequestOptions]
    ) -> types.ReplayEventsResponse:
        """Send the dead events of a notification again."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/notifications/{segment('name', name)}/replay"
        return self._client.call("POST", path, options, types.ReplayEventsResponse)

    def events(self, factory_uid: str, **params: Unpack[types.ListEventsParams]) -> EventsPage:
        """List the events for receivers outside, the newest first."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/events"
        return self._client.pages(path, params, EventsPage, types.ListEventsParams)

    def event(self, factory_uid: str, event_uid: str, **options: Unpack[RequestOptions]) -> types.EventDetail:
        """Return an event with its attempts."""
        path = f"/factory/{segment('factory_uid', factory_uid)}/events/{segment('event_uid', event_uid)}"
        return self._client.call("GET", path, options, types.EventDetail)

    def replay(self, factory_uid: str, event_uid: str, **options: Unpack[RequestOptions]) -> types.Event:
        """Send an event again that is dead or was sent."""
        path = (
            f"/factory/{segment('factory_uid', factory_uid)}/events/{segment('event_uid', event_uid)}/replay"
        )
        return self._client.call("POST", path, options, types.Event)


class NotificationsWithRawResponse:
    """The notifications of a factory, with whole responses."""

    def __init__(self, resource: Notifications) -> None:
        self.list = raw(resource.list)
        self.test = raw(resource.test)
        self.replay_dead = raw(resource.replay_dead)
        self.events = raw(resource.events)
        self.event = raw(resource.event)
        self.replay = raw(resource.replay)
