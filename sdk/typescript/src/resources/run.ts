import type { ServerSentEvent } from "../core/sse.js";
import { isRecord } from "../core/errors.js";
import type { ConversationMessage, RunItem, RunState, RunStateEvent } from "../generated/types.js";

/** The states in which an execution is over. Only a follow-up moves such a run on. */
export const ENDED_STATES: ReadonlySet<RunState> = new Set([
  "SUCCEEDED",
  "FAILED",
  "ERROR",
  "BLOCKED",
  "CANCELLED",
]);

const MOVING_STATES: ReadonlySet<RunState> = new Set(["PENDING", "QUEUED", "CLAIMED", "INPROGRESS"]);

/** Something that happened in a run. An event that this version does not know is `other`. */
export type RunEvent =
  | { event: "state"; data: RunStateEvent; id: string | undefined }
  | { event: "message"; data: ConversationMessage; id: string | undefined }
  | { event: "other"; name: string; data: unknown; id: string | undefined };

/** Whether a run is over. A state that is not known counts as over once the run has an end. */
export function hasEnded(run: RunItem): boolean {
  if (ENDED_STATES.has(run.state)) return true;
  return !MOVING_STATES.has(run.state) && typeof run.finished_at === "string";
}

/** Reads an event of a run's stream; undefined when it is none. */
export function readEvent({ event, data, id }: ServerSentEvent): RunEvent | undefined {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    return undefined;
  }
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
  return { event: "other", name: event, data: value, id };
}

/** Whether a stream that closes after this event is complete; undefined when the event does not tell. */
export function endsStream(event: RunEvent): boolean | undefined {
  return event.event === "state" ? ENDED_STATES.has(event.data.state) : undefined;
}

/** How long to wait before a run is looked at again: short at first, then ever longer. */
export function pollInterval(attempt: number, longest: number): number {
  return Math.min(250 * 1.5 ** Math.min(attempt, 32), longest) * (0.9 + Math.random() * 0.1);
}
