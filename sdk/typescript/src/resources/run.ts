import type { RunItem, RunState } from "../generated/types.js";
import type { RunEvent } from "./events.js";

/** The end states. Only a follow-up continues such a run. */
export const ENDED_STATES: ReadonlySet<RunState> = new Set([
  "SUCCEEDED",
  "FAILED",
  "ERROR",
  "BLOCKED",
  "CANCELLED",
]);

const MOVING_STATES: ReadonlySet<RunState> = new Set(["PENDING", "QUEUED", "CLAIMED", "INPROGRESS"]);

/** Whether a run has ended. Unknown states count as ended once the run has an end time. */
export function hasEnded(run: RunItem): boolean {
  if (ENDED_STATES.has(run.state)) return true;
  return !MOVING_STATES.has(run.state) && typeof run.finished_at === "string";
}

/** Whether a stream that closes after this event is complete; undefined if unknown. */
export function endsStream(event: RunEvent): boolean | undefined {
  return event.event === "state" ? ENDED_STATES.has(event.data.state) : undefined;
}

/** How long to wait before the next look at a run: short at first, then longer. */
export function pollInterval(attempt: number, longest: number): number {
  return Math.min(250 * 1.5 ** Math.min(attempt, 32), longest) * (0.9 + Math.random() * 0.1);
}
