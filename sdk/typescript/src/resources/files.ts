import { type Body, call, type Caller, list, type Query } from "../core/caller.js";
import { Page, type PagePromise } from "../core/page.js";
import type { APIPromise } from "../core/promise.js";
import { path, segments, type RequestOptions } from "../core/request.js";
import { bytes, object } from "../core/response.js";
import type {
  FileContent,
  HeldFile,
  ListFilesResponse,
  ListRevisionsResponse,
  Revision,
  RevisionWithDifference,
  Sync,
} from "../generated/types.js";

/** A page of files. */
export class FilesPage extends Page<HeldFile, ListFilesResponse> {
  /** The files of this page. */
  get files(): HeldFile[] {
    return this.items;
  }
}

/** A page of revisions. */
export class RevisionsPage extends Page<Revision, ListRevisionsResponse> {
  /** The revisions of this page. */
  get revisions(): Revision[] {
    return this.items;
  }
}

/** The definition files of a managed factory. */
export class Files {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** List the files of the definition, or of one of its revisions. */
  list(
    factoryUid: string,
    query?: Query<"listFiles">,
    options?: RequestOptions,
  ): PagePromise<FilesPage, HeldFile> {
    return list(this.#client, path`/factory/${factoryUid}/files`, query, options, FilesPage, "files");
  }

  /** Read a definition file. */
  retrieve(
    factoryUid: string,
    file: string,
    query?: Query<"getFile">,
    options?: RequestOptions,
  ): APIPromise<FileContent> {
    return call(this.#client, "GET", pathOf(factoryUid, file), { query }, options, object<FileContent>);
  }

  /** Write a definition file and apply the new definition, or refuse it as a whole. */
  put(
    factoryUid: string,
    file: string,
    params: Body<"putFile"> & Query<"putFile">,
    options?: RequestOptions,
  ): APIPromise<Sync> {
    const { base_revision, ...body } = params;
    const query = { base_revision } satisfies All<Query<"putFile">>;
    return call(this.#client, "PUT", pathOf(factoryUid, file), { query, body }, options, object<Sync>);
  }

  /** Delete a definition file and apply the new definition, or refuse it as a whole. */
  delete(
    factoryUid: string,
    file: string,
    query?: Query<"deleteFile">,
    options?: RequestOptions,
  ): APIPromise<Sync> {
    return call(this.#client, "DELETE", pathOf(factoryUid, file), { query }, options, object<Sync>);
  }

  /** Replace the definition with a tree of files. Deletes all other files. */
  replace(
    factoryUid: string,
    params: Body<"importFiles"> & Query<"importFiles">,
    options?: RequestOptions,
  ): APIPromise<Sync> {
    const { base_revision, allow_prune, allow_rename, ...body } = params;
    const query = { base_revision, allow_prune, allow_rename } satisfies All<Query<"importFiles">>;
    const where = path`/factory/${factoryUid}/files`;
    return call(this.#client, "PUT", where, { query, body }, options, object<Sync>);
  }

  /** Replace the definition with the files of a tar. Deletes all other files. */
  importTar(
    factoryUid: string,
    tar: Uint8Array,
    query?: Query<"importTar">,
    options?: RequestOptions,
  ): APIPromise<Sync> {
    const where = path`/factory/${factoryUid}/files.tar`;
    const headers = { "content-type": "application/x-tar" };
    return call(this.#client, "PUT", where, { query, body: tar, headers }, options, object<Sync>);
  }

  /** Return a tar of the files, for a git or directory source. */
  exportTar(
    factoryUid: string,
    query?: Query<"exportFiles">,
    options?: RequestOptions,
  ): APIPromise<Uint8Array> {
    return call(this.#client, "GET", path`/factory/${factoryUid}/files.tar`, { query }, options, bytes);
  }
}

/** The revisions of the definition of a managed factory. */
export class Revisions {
  readonly #client: Caller;

  constructor(client: Caller) {
    this.#client = client;
  }

  /** List the revisions, the newest first. */
  list(
    factoryUid: string,
    query?: Query<"listRevisions">,
    options?: RequestOptions,
  ): PagePromise<RevisionsPage, Revision> {
    const where = path`/factory/${factoryUid}/revisions`;
    return list(this.#client, where, query, options, RevisionsPage, "revisions");
  }

  /** Return a revision with its changes. */
  retrieve(
    factoryUid: string,
    revision: string,
    options?: RequestOptions,
  ): APIPromise<RevisionWithDifference> {
    const where = path`/factory/${factoryUid}/revisions/${revision}`;
    return call(this.#client, "GET", where, {}, options, object<RevisionWithDifference>);
  }

  /** Make a new revision with the files of an earlier one, and apply it. */
  restore(
    factoryUid: string,
    revision: string,
    query?: Query<"restoreRevision">,
    options?: RequestOptions,
  ): APIPromise<Sync> {
    const where = path`/factory/${factoryUid}/revisions/${revision}/restore`;
    return call(this.#client, "POST", where, { query }, options, object<Sync>);
  }
}

/** Every member, so that a parameter that is new in the document does not compile before it is sent. */
type All<T> = Record<keyof T, unknown>;

function pathOf(factoryUid: string, file: string): () => string {
  return () => path`/factory/${factoryUid}/files/`() + segments(file);
}
