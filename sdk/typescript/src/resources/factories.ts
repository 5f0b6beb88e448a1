import { type Body, call, type Caller, list, type Query } from "../core/caller.js";
import { Page, type PagePromise } from "../core/page.js";
import type { APIPromise } from "../core/promise.js";
import { path, type RequestOptions } from "../core/request.js";
import { nothing, object } from "../core/response.js";
import type {
  Automation,
  AutomationFlow,
  DroppedRuns,
  Factory,
  FactoryRunResponse,
  FilterTestResponse,
  ListAppliedResponse,
  ListAutomationsResponse,
  ListFactoriesResponse,
  ListSyncsResponse,
  Plan,
  Rollback,
  Sync,
} from "../generated/types.js";
import { Files, Revisions } from "./files.js";
import { Notifications } from "./notifications.js";
import { Webhooks } from "./webhooks.js";

/** A page of factories. */
export class FactoriesPage extends Page<Factory, ListFactoriesResponse> {
  /** The factories of this page. */
  get factories(): Factory[] {
    return this.items;
  }
}

/** A page of automations. */
export class AutomationsPage extends Page<Automation, ListAutomationsResponse> {
  /** The automations of this page. */
  get automations(): Automation[] {
    return this.items;
  }
}

/** A page of syncs. */
export class SyncsPage extends Page<Sync, ListSyncsResponse> {
  /** The syncs of this page. */
  get syncs(): Sync[] {
    return this.items;
  }
}

/** Work for a factory. */
export class FactoryRuns {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** Give work to the factory's foreman. Follow the run with `client.agent.runs`. */
  create(
    factoryUid: string,
    body: Body<"createFactoryRun">,
    options?: RequestOptions,
  ): APIPromise<FactoryRunResponse> {
    return call(
      this.#client,
      "POST",
      path`/factory/${factoryUid}/runs`,
      { body },
      options,
      object<FactoryRunResponse>,
    );
  }
}

/** The automations of a factory. */
export class Automations {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** List a factory's automations, and whether each fires. */
  list(
    factoryUid: string,
    query?: Query<"listAutomations">,
    options?: RequestOptions,
  ): PagePromise<AutomationsPage, Automation> {
    return list(
      this.#client,
      path`/factory/${factoryUid}/automations`,
      query,
      options,
      AutomationsPage,
      "automations",
    );
  }

  /** List what waits in an automation, what was skipped, and its conversations. */
  flow(factoryUid: string, automation: string, options?: RequestOptions): APIPromise<AutomationFlow> {
    return call(
      this.#client,
      "GET",
      path`/factory/${factoryUid}/automations/${automation}/flow`,
      {},
      options,
      object<AutomationFlow>,
    );
  }

  /** Cancel the runs of an automation that wait. */
  dropWaiting(factoryUid: string, automation: string, options?: RequestOptions): APIPromise<DroppedRuns> {
    return call(
      this.#client,
      "DELETE",
      path`/factory/${factoryUid}/automations/${automation}/waiting`,
      {},
      options,
      object<DroppedRuns>,
    );
  }
}

/** The history of applied and refused revisions. */
export class Syncs {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** List a factory's attempts to apply, the newest first. */
  list(
    factoryUid: string,
    query?: Query<"listSyncs">,
    options?: RequestOptions,
  ): PagePromise<SyncsPage, Sync> {
    return list(this.#client, path`/factory/${factoryUid}/syncs`, query, options, SyncsPage, "syncs");
  }
}

/** Factories. */
export class Factories {
  /** Work for a factory. */
  readonly runs: FactoryRuns;
  /** The notifications of a factory, and their events. */
  readonly notifications: Notifications;
  /** The webhooks of a factory. */
  readonly webhooks: Webhooks;
  /** The automations of a factory. */
  readonly automations: Automations;
  /** The history of applied and refused revisions. */
  readonly syncs: Syncs;
  /** The definition files of a managed factory. */
  readonly files: Files;
  /** The revisions of the definition of a managed factory. */
  readonly revisions: Revisions;
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
    this.runs = new FactoryRuns(client);
    this.notifications = new Notifications(client);
    this.webhooks = new Webhooks(client);
    this.automations = new Automations(client);
    this.syncs = new Syncs(client);
    this.files = new Files(client);
    this.revisions = new Revisions(client);
  }

  /** List the factories. */
  list(query?: Query<"listFactories">, options?: RequestOptions): PagePromise<FactoriesPage, Factory> {
    return list(this.#client, "/factory", query, options, FactoriesPage, "factories");
  }

  /** Return one factory: its source, state and contents. */
  retrieve(factoryUid: string, options?: RequestOptions): APIPromise<Factory> {
    return call(this.#client, "GET", path`/factory/${factoryUid}`, {}, options, object<Factory>);
  }

  /**
   * Plan a tree: its changes, and whether the server would accept it. Plans the given files, or the head
   * of the factory's source. Changes nothing.
   */
  plan(factoryUid: string, body?: Body<"planFactory">, options?: RequestOptions): APIPromise<Plan> {
    return call(this.#client, "POST", path`/factory/${factoryUid}/plan`, { body }, options, object<Plan>);
  }

  /** Apply the head of the factory's source, and return when it is applied or refused. */
  sync(factoryUid: string, body?: Body<"syncFactory">, options?: RequestOptions): APIPromise<Sync> {
    return call(this.#client, "POST", path`/factory/${factoryUid}/sync`, { body }, options, object<Sync>);
  }

  /** List the applied revisions to which the factory can be rolled back. */
  applied(factoryUid: string, options?: RequestOptions): APIPromise<ListAppliedResponse> {
    return call(
      this.#client,
      "GET",
      path`/factory/${factoryUid}/applied`,
      {},
      options,
      object<ListAppliedResponse>,
    );
  }

  /** Serve an earlier applied revision, and stay there until resume; with dry_run only plan that. */
  rollback(
    factoryUid: string,
    body?: Body<"rollbackFactory">,
    options?: RequestOptions,
  ): APIPromise<Rollback> {
    return call(
      this.#client,
      "POST",
      path`/factory/${factoryUid}/rollback`,
      { body },
      options,
      object<Rollback>,
    );
  }

  /** Have the factory follow its source again after a rollback. */
  resume(factoryUid: string, options?: RequestOptions): APIPromise<Factory> {
    return call(this.#client, "POST", path`/factory/${factoryUid}/resume`, {}, options, object<Factory>);
  }

  /** Test whether a delivery or payload would match this filter, and why. */
  testFilter(
    factoryUid: string,
    body: Body<"testFilter">,
    options?: RequestOptions,
  ): APIPromise<FilterTestResponse> {
    return call(
      this.#client,
      "POST",
      path`/factory/${factoryUid}/filter-tests`,
      { body },
      options,
      object<FilterTestResponse>,
    );
  }

  /** Forward a git host's push notice unchanged: the server verifies its signature and reads the source. */
  notifyPush(
    factoryUid: string,
    body: Uint8Array,
    headers: Record<string, string>,
    options?: RequestOptions,
  ): APIPromise<void> {
    return call(this.#client, "POST", path`/factory/${factoryUid}/push`, { body, headers }, options, nothing);
  }
}
