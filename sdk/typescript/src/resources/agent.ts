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
  AgentIdentity,
  Artifact,
  BundledSkills,
  Conversation,
  ConversationFollowupResponse,
  ListAgentIdentitiesResponse,
  ListAgentSkillsResponse,
  ListEnvironmentsResponse,
  ListModelsResponse,
  ListOutputsResponse,
  ListRunsResponse,
  ListSchedulesResponse,
  RunAgentResponse,
  RunAnswerResponse,
  RunFollowupResponse,
  RunItem,
  RunOutput,
  RunTimeline,
  Schedule,
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
    return call(
      this.#client,
      "POST",
      path`/agent/runs/${runId}/retry`,
      {},
      options,
      object<RunAgentResponse>,
    );
  }

  /** Return what the server performs for the run at a forge. */
  outputs(runId: string, options?: RequestOptions): APIPromise<ListOutputsResponse> {
    const where = path`/agent/runs/${runId}/outputs`;
    return call(this.#client, "GET", where, {}, options, object<ListOutputsResponse>);
  }

  /** Open a pull request from the changes of the run. */
  openPullRequest(
    runId: string,
    body: Body<"openPullRequest">,
    options?: RequestOptions,
  ): APIPromise<RunOutput> {
    const where = path`/agent/runs/${runId}/outputs`;
    return call(this.#client, "POST", where, { body }, options, object<RunOutput>);
  }

  /** Agree to a staged output, which the server then performs. */
  approveOutput(runId: string, outputUid: string, options?: RequestOptions): APIPromise<RunOutput> {
    const where = path`/agent/runs/${runId}/outputs/${outputUid}/approve`;
    return call(this.#client, "POST", where, {}, options, object<RunOutput>);
  }

  /** Reject a staged output. */
  rejectOutput(runId: string, outputUid: string, options?: RequestOptions): APIPromise<RunOutput> {
    const where = path`/agent/runs/${runId}/outputs/${outputUid}/reject`;
    return call(this.#client, "POST", where, {}, options, object<RunOutput>);
  }

  /** Try a failed output again. */
  retryOutput(runId: string, outputUid: string, options?: RequestOptions): APIPromise<RunOutput> {
    const where = path`/agent/runs/${runId}/outputs/${outputUid}/retry`;
    return call(this.#client, "POST", where, {}, options, object<RunOutput>);
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

  /** Answer what the agent of a run asks; `questions` of the run has its questions and their choices. */
  answer(
    runId: string,
    body: Body<"answerQuestion">,
    options?: RequestOptions,
  ): APIPromise<RunAnswerResponse> {
    const where = path`/agent/runs/${runId}/answers`;
    return call(this.#client, "POST", where, { body }, options, object<RunAnswerResponse>);
  }

  /** Return the conversation of the run. */
  conversation(runId: string, options?: RequestOptions): APIPromise<Conversation> {
    const where = path`/agent/runs/${runId}/conversation`;
    return call(this.#client, "GET", where, {}, options, object<Conversation>);
  }

  /** Return the changes of the run's state, from its creation on. */
  timeline(runId: string, options?: RequestOptions): APIPromise<RunTimeline> {
    return call(this.#client, "GET", path`/agent/runs/${runId}/timeline`, {}, options, object<RunTimeline>);
  }

  /** Return the conversation as the bytes of a JSON file. */
  transcript(runId: string, options?: RequestOptions): APIPromise<Uint8Array> {
    return call(this.#client, "GET", path`/agent/runs/${runId}/transcript`, {}, options, bytes);
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

  /** Return a conversation as the bytes of a JSON file. */
  transcript(conversationId: string, options?: RequestOptions): APIPromise<Uint8Array> {
    const where = path`/agent/conversations/${conversationId}/transcript`;
    return call(this.#client, "GET", where, {}, options, bytes);
  }

  /** Send a message to the newest run of a conversation. */
  submitFollowup(
    conversationId: string,
    body: Body<"createConversationFollowup">,
    options?: RequestOptions,
  ): APIPromise<ConversationFollowupResponse> {
    const where = path`/agent/conversations/${conversationId}/followups`;
    return call(this.#client, "POST", where, { body }, options, object<ConversationFollowupResponse>);
  }
}

/** What runs left: files, and links. `artifacts` of a run names them. */
export class Artifacts {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** Return what is known of an artifact. */
  retrieve(uid: string, options?: RequestOptions): APIPromise<Artifact> {
    return call(this.#client, "GET", path`/agent/artifacts/${uid}`, {}, options, object<Artifact>);
  }

  /** Return the bytes of a file that a run left. An agent wrote them: do not trust them. */
  download(uid: string, options?: RequestOptions): APIPromise<Uint8Array> {
    return call(this.#client, "GET", path`/agent/artifacts/${uid}/download`, {}, options, bytes);
  }
}

/** Skills: the bundled ones, and those of the applied definitions. */
export class Skills {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** Return the catalog, for grouping. The skills that a run had are its `advertised_skills`. */
  list(options?: RequestOptions): APIPromise<BundledSkills> {
    return call(this.#client, "GET", "/agent/skills", {}, options, object<BundledSkills>);
  }

  /** Return the skills of the applied definitions. */
  defined(query?: Query<"listAgentSkills">, options?: RequestOptions): APIPromise<ListAgentSkillsResponse> {
    return call(this.#client, "GET", "/agent", { query }, options, object<ListAgentSkillsResponse>);
  }
}

/** The agents of the applied definitions. */
export class Identities {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** Return the agents of one factory, or of all. */
  list(
    query?: Query<"listAgentIdentities">,
    options?: RequestOptions,
  ): APIPromise<ListAgentIdentitiesResponse> {
    const read = object<ListAgentIdentitiesResponse>;
    return call(this.#client, "GET", "/agent/identities", { query }, options, read);
  }

  /** Return one agent. */
  retrieve(uid: string, options?: RequestOptions): APIPromise<AgentIdentity> {
    return call(this.#client, "GET", path`/agent/identities/${uid}`, {}, options, object<AgentIdentity>);
  }
}

/** The schedule triggers of the applied definitions. */
export class Schedules {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** Return the schedules of all factories. */
  list(options?: RequestOptions): APIPromise<ListSchedulesResponse> {
    return call(this.#client, "GET", "/agent/schedules", {}, options, object<ListSchedulesResponse>);
  }

  /** Return one schedule. */
  retrieve(scheduleId: string, options?: RequestOptions): APIPromise<Schedule> {
    return call(this.#client, "GET", path`/agent/schedules/${scheduleId}`, {}, options, object<Schedule>);
  }
}

/** Agents: their runs, conversations, artifacts, skills and schedules. */
export class Agent {
  readonly #client: Caller;
  /** Runs of agents. */
  readonly runs: Runs;
  /** Conversations, which outlive the runs in them. */
  readonly conversations: Conversations;
  /** What runs left: files, and links. */
  readonly artifacts: Artifacts;
  /** Skills: the bundled ones, and those of the applied definitions. */
  readonly skills: Skills;
  /** The agents of the applied definitions. */
  readonly identities: Identities;
  /** The schedule triggers of the applied definitions. */
  readonly schedules: Schedules;

  constructor(client: Caller) {
    this.#client = client;
    this.runs = new Runs(client);
    this.conversations = new Conversations(client);
    this.artifacts = new Artifacts(client);
    this.skills = new Skills(client);
    this.identities = new Identities(client);
    this.schedules = new Schedules(client);
  }

  /** Return the language models that settings and definitions name. */
  models(options?: RequestOptions): APIPromise<ListModelsResponse> {
    return call(this.#client, "GET", "/agent/models", {}, options, object<ListModelsResponse>);
  }

  /** Return the environments that definitions name. */
  environments(
    query?: Query<"listEnvironments">,
    options?: RequestOptions,
  ): APIPromise<ListEnvironmentsResponse> {
    const read = object<ListEnvironmentsResponse>;
    return call(this.#client, "GET", "/agent/environments", { query }, options, read);
  }
}
