import { type Body, call, type Caller, list, type Query } from "../core/caller.js";
import { Page, type PagePromise } from "../core/page.js";
import type { APIPromise } from "../core/promise.js";
import { path, type RequestOptions } from "../core/request.js";
import { nothing, object } from "../core/response.js";
import type { APIKey, CreatedAPIKey, ListAPIKeysResponse } from "../generated/types.js";

/** A page of keys. */
export class KeysPage extends Page<APIKey, ListAPIKeysResponse> {
  /** The keys of this page. */
  get keys(): APIKey[] {
    return this.items;
  }
}

/** API keys. */
export class Keys {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** List the API keys, without their secrets. */
  list(query?: Query<"listKeys">, options?: RequestOptions): PagePromise<KeysPage, APIKey> {
    return list(this.#client, "/keys", query, options, KeysPage, "keys");
  }

  /** Create an API key. No later answer contains its secret. */
  create(body: Body<"createKey">, options?: RequestOptions): APIPromise<CreatedAPIKey> {
    return call(this.#client, "POST", "/keys", { body }, options, object<CreatedAPIKey>);
  }

  /** Revoke an API key. It stops working before the call returns. */
  revoke(keyUid: string, options?: RequestOptions): APIPromise<void> {
    return call(this.#client, "DELETE", path`/keys/${keyUid}`, {}, options, nothing);
  }
}
