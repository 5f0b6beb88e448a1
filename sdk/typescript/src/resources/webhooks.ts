import {
  type Body,
  call,
  type Caller,
  events,
  type EventsOptions,
  list,
  type Query,
} from "../core/caller.js";
import { Page, type PagePromise } from "../core/page.js";
import type { APIPromise } from "../core/promise.js";
import { path, type RequestOptions } from "../core/request.js";
import { bytes, nothing, object } from "../core/response.js";
import type { EventStream } from "../core/stream.js";
import type {
  Delivery,
  DeliveryDetail,
  ListDeliveriesResponse,
  ListWebhooksResponse,
  ReplayResponse,
  Webhook,
  WebhookWithSecret,
} from "../generated/types.js";
import { type DeliveryEvent, deliveryReader } from "./events.js";

/** A page of webhooks. */
export class WebhooksPage extends Page<Webhook, ListWebhooksResponse> {
  /** The webhooks of this page. */
  get webhooks(): Webhook[] {
    return this.items;
  }
}

/** A page of deliveries. */
export class DeliveriesPage extends Page<Delivery, ListDeliveriesResponse> {
  /** The deliveries of this page. */
  get deliveries(): Delivery[] {
    return this.items;
  }
}

/** The deliveries of a webhook. */
export class Deliveries {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** List the deliveries of a webhook, the newest first. */
  list(
    factoryUid: string,
    webhookUid: string,
    query?: Query<"listDeliveries">,
    options?: RequestOptions,
  ): PagePromise<DeliveriesPage, Delivery> {
    return list(
      this.#client,
      path`/factory/${factoryUid}/webhooks/${webhookUid}/deliveries`,
      query,
      options,
      DeliveriesPage,
      "deliveries",
    );
  }

  /** Return one delivery with its payload and the verdict of each automation. */
  retrieve(
    factoryUid: string,
    webhookUid: string,
    deliveryId: string,
    options?: RequestOptions,
  ): APIPromise<DeliveryDetail> {
    return call(
      this.#client,
      "GET",
      path`/factory/${factoryUid}/webhooks/${webhookUid}/deliveries/${deliveryId}`,
      {},
      options,
      object<DeliveryDetail>,
    );
  }

  /** Replay a delivery: start its runs again, as a new delivery. */
  replay(
    factoryUid: string,
    webhookUid: string,
    deliveryId: string,
    options?: RequestOptions,
  ): APIPromise<ReplayResponse> {
    return call(
      this.#client,
      "POST",
      path`/factory/${factoryUid}/webhooks/${webhookUid}/deliveries/${deliveryId}/replay`,
      {},
      options,
      object<ReplayResponse>,
    );
  }

  /**
   * Return an accepted delivery as it was sent, in the form of HTTP/1.1 and without credentials. Needs a key of
   * role `runner`. Its headers are there when such a key followed the deliveries as it came. Others wrote it: do
   * not trust it.
   */
  request(
    factoryUid: string,
    webhookUid: string,
    deliveryId: string,
    options?: RequestOptions,
  ): APIPromise<Uint8Array> {
    const where = path`/factory/${factoryUid}/webhooks/${webhookUid}/deliveries/${deliveryId}/request`;
    return call(this.#client, "GET", where, {}, options, bytes);
  }

  /**
   * Follow the accepted deliveries of a webhook, from now on or after an event. The first event confirms that the
   * server listens. The stream has no end. A connection that drops is made again where it stood, up to
   * `maxRetries` times in a row, 5 by default, and repeats nothing.
   */
  events(factoryUid: string, webhookUid: string, options: EventsOptions = {}): EventStream<DeliveryEvent> {
    const where = path`/factory/${factoryUid}/webhooks/${webhookUid}/deliveries/events`;
    return events(this.#client, where, options, { read: deliveryReader(), ends: () => undefined });
  }

  /** The same as `events`. */
  stream(factoryUid: string, webhookUid: string, options?: EventsOptions): EventStream<DeliveryEvent> {
    return this.events(factoryUid, webhookUid, options);
  }
}

/** The webhooks of a factory. */
export class Webhooks {
  /** The deliveries of a webhook. */
  readonly deliveries: Deliveries;
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
    this.deliveries = new Deliveries(client);
  }

  /** List a factory's webhooks. */
  list(
    factoryUid: string,
    query?: Query<"listWebhooks">,
    options?: RequestOptions,
  ): PagePromise<WebhooksPage, Webhook> {
    return list(
      this.#client,
      path`/factory/${factoryUid}/webhooks`,
      query,
      options,
      WebhooksPage,
      "webhooks",
    );
  }

  /** Return one webhook, live or deleted. */
  retrieve(factoryUid: string, webhookUid: string, options?: RequestOptions): APIPromise<Webhook> {
    return call(
      this.#client,
      "GET",
      path`/factory/${factoryUid}/webhooks/${webhookUid}`,
      {},
      options,
      object<Webhook>,
    );
  }

  /** Create a webhook of a managed factory. Only this answer has a generated secret. */
  create(
    factoryUid: string,
    body: Body<"createWebhook">,
    options?: RequestOptions,
  ): APIPromise<WebhookWithSecret> {
    return call(
      this.#client,
      "POST",
      path`/factory/${factoryUid}/webhooks`,
      { body },
      options,
      object<WebhookWithSecret>,
    );
  }

  /** Change a webhook of a managed factory. */
  update(
    factoryUid: string,
    webhookUid: string,
    body: Body<"updateWebhook">,
    options?: RequestOptions,
  ): APIPromise<Webhook> {
    return call(
      this.#client,
      "PATCH",
      path`/factory/${factoryUid}/webhooks/${webhookUid}`,
      { body },
      options,
      object<Webhook>,
    );
  }

  /** Delete a webhook of a managed factory. It answers 404 from now on. */
  delete(
    factoryUid: string,
    webhookUid: string,
    query?: Query<"deleteWebhook">,
    options?: RequestOptions,
  ): APIPromise<void> {
    return call(
      this.#client,
      "DELETE",
      path`/factory/${factoryUid}/webhooks/${webhookUid}`,
      { query },
      options,
      nothing,
    );
  }

  /** Rotate the secret of a webhook. The old one stops working before the call returns. */
  rotate(
    factoryUid: string,
    webhookUid: string,
    body?: Body<"rotateSecret">,
    options?: RequestOptions,
  ): APIPromise<WebhookWithSecret> {
    return call(
      this.#client,
      "POST",
      path`/factory/${factoryUid}/webhooks/${webhookUid}/rotate`,
      { body },
      options,
      object<WebhookWithSecret>,
    );
  }
}
