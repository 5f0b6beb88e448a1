import {
  type Body,
  call,
  type Caller,
  events,
  type EventsOptions,
  list,
  type Query,
} from "../core/caller.js";
import { RunWaitTimeoutError } from "../core/errors.js";
import { Page, type PagePromise } from "../core/page.js";
import type { APIPromise } from "../core/promise.js";
import { path, type RequestOptions } from "../core/request.js";
import { bytes, object, string } from "../core/response.js";
import { sleep } from "../core/retry.js";
import type { EventStream } from "../core/stream.js";
import type {
  BundledSkills,
  Conversation,
  ListRunsResponse,
  RunAgentResponse,
  RunFollowupResponse,
  RunItem,
} from "../generated/types.js";
import { readRunEvent, type RunEvent } from "./events.js";
import { endsStream, hasEnded, pollInterval } from "./run.js";

/** A page of runs. */
export class RunsPage extends Page<RunItem, ListRunsResponse> {
  /** The runs of this page. */
  get runs(): RunItem[] {
    return this.items;
  }
}

/** Options of waiting for a run; `timeout` is still that of one request. */
export interface WaitOptions extends RequestOptions {
  /** Milliseconds after which to give up, with a RunWaitTimeoutError; by default never. */
  maxWait?: number | undefined;
  /** Longest pause between two looks at the run in milliseconds; 5,000 by default. */
  longestInterval?: number | undefined;
}

/** Runs of agents. */
export class Runs {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** Start a run. A retry never starts a second one: every call has an idempotency key. */
  create(body: Body<"createRun">, options?: RequestOptions): APIPromise<RunAgentResponse> {
    return call(this.#client, "POST", "/agent/runs", { body }, options, object<RunAgentResponse>);
  }

  /** List runs, the last updated first. */
  list(query?: Query<"listRuns">, options?: RequestOptions): PagePromise<RunsPage, RunItem> {
    return list(this.#client, "/agent/runs", query, options, RunsPage, "runs");
  }

  /** Return one run in full. */
  retrieve(runId: string, options?: RequestOptions): APIPromise<RunItem> {
    return call(this.#client, "GET", path`/agent/runs/${runId}`, {}, options, object<RunItem>);
  }

  /** Cancel a run that has not ended, and return its ID. */
  cancel(runId: string, options?: RequestOptions): APIPromise<string> {
    return call(this.#client, "POST", path`/agent/runs/${runId}/cancel`, {}, options, string);
  }

  /** Start a run that has ended again, as a new run. */
  retry(runId: string, options?: RequestOptions): APIPromise<RunAgentResponse> {
    return call(this.#client, "POST", path`/agent/runs/${runId}/retry`, {}, options, object<RunAgentResponse>);
  }

  /** Send a message to a run: it joins the prompt, waits for the execution to end, or reopens the run. */
  submitFollowup(
    runId: string,
    body: Body<"createFollowup">,
    options?: RequestOptions,
  ): APIPromise<RunFollowupResponse> {
    const where = path`/agent/runs/${runId}/followups`;
    return call(this.#client, "POST", where, { body }, options, object<RunFollowupResponse>);
  }

  /** Return the conversation of the run. */
  conversation(runId: string, options?: RequestOptions): APIPromise<Conversation> {
    const where = path`/agent/runs/${runId}/conversation`;
    return call(this.#client, "GET", where, {}, options, object<Conversation>);
  }

  /** Return the bytes of a file of the run. */
  attachment(runId: string, fileName: string, options?: RequestOptions): APIPromise<Uint8Array> {
    return call(this.#client, "GET", path`/agent/runs/${runId}/attachments/${fileName}`, {}, options, bytes);
  }

  /**
   * Follow the state changes and messages of a run, from the beginning or after an event. The stream
   * ends when the run has. A connection that drops is made again where it stood, up to `maxRetries` times in
   * a row, 5 by default.
   */
  events(runId: string, options: EventsOptions = {}): EventStream<RunEvent> {
    const where = path`/agent/runs/${runId}/events`;
    return events(this.#client, where, options, { read: readRunEvent, ends: endsStream });
  }

  /** The same as `events`. */
  stream(runId: string, options?: EventsOptions): EventStream<RunEvent> {
    return this.events(runId, options);
  }

  /** Wait until a run has ended, and return it. BLOCKED is an end state. */
  async wait(runId: string, options: WaitOptions = {}): Promise<RunItem> {
    const { maxWait = Infinity, longestInterval = 5_000, ...rest } = options;
    const start = Date.now();
    for (let attempt = 0; ; attempt++) {
      const run = await this.retrieve(runId, rest);
      if (hasEnded(run)) return run;
      const left = maxWait - (Date.now() - start);
      if (left <= 0) {
        throw new RunWaitTimeoutError(`run ${runId} is ${run.state} after ${maxWait} milliseconds`, run);
      }
      await sleep(Math.min(pollInterval(attempt, longestInterval), left), rest.signal);
    }
  }
}

/** Conversations, which outlive the runs in them. */
export class Conversations {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** Return the messages of all runs of a conversation. */
  retrieve(conversationId: string, options?: RequestOptions): APIPromise<Conversation> {
    const where = path`/agent/conversations/${conversationId}`;
    return call(this.#client, "GET", where, {}, options, object<Conversation>);
  }
}

/** The catalog of bundled skills. */
export class Skills {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** Return the catalog, for grouping. The skills that a run had are its `advertised_skills`. */
  list(options?: RequestOptions): APIPromise<BundledSkills> {
    return call(this.#client, "GET", "/agent/skills", {}, options, object<BundledSkills>);
  }
}

/** Agents: their runs, conversations and skills. */
export class Agent {
  /** Runs of agents. */
  readonly runs: Runs;
  /** Conversations, which outlive the runs in them. */
  readonly conversations: Conversations;
  /** The catalog of bundled skills. */
  readonly skills: Skills;

  constructor(client: Caller) {
    this.runs = new Runs(client);
    this.conversations = new Conversations(client);
    this.skills = new Skills(client);
  }
}
