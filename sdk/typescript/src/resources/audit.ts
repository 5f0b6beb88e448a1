import { type Caller, list, type Query } from "../core/caller.js";
import { Page, type PagePromise } from "../core/page.js";
import type { RequestOptions } from "../core/request.js";
import type { AuditEntry, ListAuditResponse } from "../generated/types.js";

/** A page of the audit log. */
export class AuditPage extends Page<AuditEntry, ListAuditResponse> {
  /** The changes of this page. */
  get entries(): AuditEntry[] {
    return this.items;
  }
}

/** Who changed what. */
export class Audit {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** List the changes, newest first; needs the role admin. */
  list(query?: Query<"listAudit">, options?: RequestOptions): PagePromise<AuditPage, AuditEntry> {
    return list(this.#client, "/audit", query, options, AuditPage, "entries");
  }
}
