import { call, type Caller, list, type Query } from "../core/caller.js";
import { Page, type PagePromise } from "../core/page.js";
import type { APIPromise } from "../core/promise.js";
import { path, type RequestOptions } from "../core/request.js";
import { object } from "../core/response.js";
import type {
  Event,
  EventDetail,
  ListEventsResponse,
  ListNotificationsResponse,
  Notification,
  ReplayEventsResponse,
} from "../generated/types.js";

/** A page of notifications. */
export class NotificationsPage extends Page<Notification, ListNotificationsResponse> {
  /** The notifications of this page. */
  get notifications(): Notification[] {
    return this.items;
  }
}

/** A page of events. */
export class EventsPage extends Page<Event, ListEventsResponse> {
  /** The events of this page. */
  get events(): Event[] {
    return this.items;
  }
}

/** The notifications of a factory, and their events. */
export class Notifications {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** List a factory's notifications. */
  list(
    factoryUid: string,
    query?: Query<"listNotifications">,
    options?: RequestOptions,
  ): PagePromise<NotificationsPage, Notification> {
    const at = path`/factory/${factoryUid}/notifications`;
    return list(this.#client, at, query, options, NotificationsPage, "notifications");
  }

  /** Send a test event. */
  test(factoryUid: string, name: string, options?: RequestOptions): APIPromise<Event> {
    const at = path`/factory/${factoryUid}/notifications/${name}/test`;
    return call(this.#client, "POST", at, {}, options, object<Event>);
  }

  /** Send the dead events of a notification again. */
  replayDead(factoryUid: string, name: string, options?: RequestOptions): APIPromise<ReplayEventsResponse> {
    const at = path`/factory/${factoryUid}/notifications/${name}/replay`;
    return call(this.#client, "POST", at, {}, options, object<ReplayEventsResponse>);
  }

  /** List the events for receivers outside, the newest first. */
  events(
    factoryUid: string,
    query?: Query<"listEvents">,
    options?: RequestOptions,
  ): PagePromise<EventsPage, Event> {
    return list(this.#client, path`/factory/${factoryUid}/events`, query, options, EventsPage, "events");
  }

  /** Return an event with its attempts. */
  event(factoryUid: string, eventUid: string, options?: RequestOptions): APIPromise<EventDetail> {
    const at = path`/factory/${factoryUid}/events/${eventUid}`;
    return call(this.#client, "GET", at, {}, options, object<EventDetail>);
  }

  /** Send an event again that is dead or was sent. */
  replay(factoryUid: string, eventUid: string, options?: RequestOptions): APIPromise<Event> {
    const at = path`/factory/${factoryUid}/events/${eventUid}/replay`;
    return call(this.#client, "POST", at, {}, options, object<Event>);
  }
}
