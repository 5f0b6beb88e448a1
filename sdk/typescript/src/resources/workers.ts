import { type Caller, list, type Query } from "../core/caller.js";
import { Page, type PagePromise } from "../core/page.js";
import type { RequestOptions } from "../core/request.js";
import type { ListWorkersResponse, Worker } from "../generated/types.js";

/** A page of workers. */
export class WorkersPage extends Page<Worker, ListWorkersResponse> {
  /** The workers of this page. */
  get workers(): Worker[] {
    return this.items;
  }
}

/** The processes that take runs. */
export class Workers {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** List the workers that were seen within a day. */
  list(query?: Query<"listWorkers">, options?: RequestOptions): PagePromise<WorkersPage, Worker> {
    return list(this.#client, "/workers", query, options, WorkersPage, "workers");
  }
}
