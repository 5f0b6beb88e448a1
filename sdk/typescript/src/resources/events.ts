import { isRecord } from "../core/errors.js";
import type { ServerSentEvent } from "../core/sse.js";
import type { ConversationMessage, Delivery, RunStateEvent } from "../generated/types.js";

/** An event of a run. Unknown events are `other`. */
export type RunEvent =
  | { event: "state"; data: RunStateEvent; id: string | undefined }
  | { event: "message"; data: ConversationMessage; id: string | undefined }
  | { event: "other"; name: string; data: unknown; id: string | undefined };

/** An event of a webhook. Unknown events are `other`. */
export type DeliveryEvent =
  | { event: "listening"; id: string | undefined }
  | { event: "delivery"; data: Delivery; id: string | undefined }
  | { event: "other"; name: string; data: unknown; id: string | undefined };

/** Reads an event of a run's stream; undefined when it is none. */
export function readRunEvent({ event, data, id }: ServerSentEvent): RunEvent | undefined {
  const value = parsed(data);
  if (event === "state") {
    return isRecord(value) && typeof value["state"] === "string"
      ? { event, data: value as unknown as RunStateEvent, id }
      : undefined;
  }
  if (event === "message") {
    return isRecord(value) && Array.isArray(value["content"])
      ? { event, data: value as unknown as ConversationMessage, id }
      : undefined;
  }
  return value === undefined ? undefined : { event: "other", name: event, data: value, id };
}

/** How many deliveries a stream remembers. */
const REMEMBERED = 10_000;

/**
 * Returns a reader for the events of one stream of deliveries. A resumed server repeats the
 * deliveries of the last half minute: a repeat is null.
 */
export function deliveryReader(): (event: ServerSentEvent) => DeliveryEvent | null | undefined {
  const seen = new Set<string>();
  return ({ event, data, id }) => {
    const value = parsed(data);
    if (event === "listening") return { event, id };
    if (event !== "delivery")
      return value === undefined ? undefined : { event: "other", name: event, data: value, id };
    if (!isRecord(value) || typeof value["delivery_id"] !== "string") return undefined;
    if (seen.has(value["delivery_id"])) return null;
    seen.add(value["delivery_id"]);
    for (const oldest of seen) {
      if (seen.size <= REMEMBERED) break;
      seen.delete(oldest);
    }
    return { event, data: value as unknown as Delivery, id };
  };
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}
