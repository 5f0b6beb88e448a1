import { type Body, call, type Caller, list, type Query } from "../core/caller.js";
import { Page, type PagePromise } from "../core/page.js";
import type { APIPromise } from "../core/promise.js";
import { path, type RequestOptions } from "../core/request.js";
import { nothing, object } from "../core/response.js";
import type { ListSecretsResponse, Secret } from "../generated/types.js";

/** A page of secrets. */
export class SecretsPage extends Page<Secret, ListSecretsResponse> {
  /** The secrets of this page. */
  get secrets(): Secret[] {
    return this.items;
  }
}

/** Team secrets. The API accepts their values and never returns them. */
export class Secrets {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** List the secrets: names, versions, and which webhooks use them. */
  list(query?: Query<"listSecrets">, options?: RequestOptions): PagePromise<SecretsPage, Secret> {
    return list(this.#client, "/secrets", query, options, SecretsPage, "secrets");
  }

  /** Create a secret or set its value, or make it pending until its provider issues it. */
  set(name: string, body: Body<"setSecret">, options?: RequestOptions): APIPromise<Secret> {
    return call(this.#client, "PUT", path`/secrets/${name}`, { body }, options, object<Secret>);
  }

  /** Delete a secret that nothing uses. */
  delete(name: string, options?: RequestOptions): APIPromise<void> {
    return call(this.#client, "DELETE", path`/secrets/${name}`, {}, options, nothing);
  }
}
