import { type Body, call, type Caller } from "../core/caller.js";
import type { APIPromise } from "../core/promise.js";
import { path, type RequestOptions } from "../core/request.js";
import { object } from "../core/response.js";
import type { SchemaDocuments, SchemaVersions, ValidateFilesResponse } from "../generated/types.js";

/** The JSON Schemas of definition files. */
export class Schemas {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** List the versions of the schemas. */
  list(options?: RequestOptions): APIPromise<SchemaVersions> {
    return call(this.#client, "GET", "/factory-files/schemas", {}, options, object<SchemaVersions>);
  }

  /** Return all schemas of a version, by name. */
  retrieve(version: string, options?: RequestOptions): APIPromise<SchemaDocuments> {
    return call(
      this.#client,
      "GET",
      path`/factory-files/schemas/${version}`,
      {},
      options,
      object<SchemaDocuments>,
    );
  }

  /** Return one schema. */
  document(version: string, document: string, options?: RequestOptions): APIPromise<Record<string, unknown>> {
    return call(
      this.#client,
      "GET",
      path`/factory-files/schemas/${version}/${document}`,
      {},
      options,
      object<Record<string, unknown>>,
    );
  }
}

/** Definition files, checked without a factory. */
export class FactoryFiles {
  /** The JSON Schemas of definition files. */
  readonly schemas: Schemas;
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
    this.schemas = new Schemas(client);
  }

  /** Check a tree of definition files. Rules that need the state of a factory are listed as not checked. */
  validate(body: Body<"validateFactoryFiles">, options?: RequestOptions): APIPromise<ValidateFilesResponse> {
    return call(
      this.#client,
      "POST",
      "/factory-files/validate",
      { body },
      options,
      object<ValidateFilesResponse>,
    );
  }
}
