import type { PageInfo } from "../generated/types.js";
import { MillwrightError } from "./errors.js";
import { APIPromise } from "./promise.js";
import type { Request } from "./request.js";
import { object, type APIResponse } from "./response.js";

/** One page of a list. Iterating over it continues through all later pages. */
export class Page<T, R extends { page_info: PageInfo }> implements AsyncIterable<T> {
  /** The answer behind this page. */
  readonly response: R;
  readonly #list: keyof R;
  readonly #request: Request;
  readonly #send: (request: Request) => Promise<APIResponse>;

  constructor(
    response: R,
    list: keyof R,
    request: Request,
    send: (request: Request) => Promise<APIResponse>,
  ) {
    this.response = response;
    this.#list = list;
    this.#request = request;
    this.#send = send;
  }

  /** The items of this page. */
  get items(): T[] {
    return (this.response[this.#list] as T[] | null | undefined) ?? [];
  }

  /** Whether there is a next page, and its cursor. */
  get pageInfo(): PageInfo {
    return this.response.page_info;
  }

  /** Whether there is a page after this one. */
  hasNextPage(): boolean {
    const info = this.response.page_info as PageInfo | null | undefined;
    return info?.has_next_page === true && typeof info.next_cursor === "string" && info.next_cursor !== "";
  }

  /** Fetches the page after this one. There must be one: see `hasNextPage`. */
  async getNextPage(): Promise<this> {
    if (!this.hasNextPage()) throw new MillwrightError("this is the last page: call hasNextPage first");
    const cursor = this.pageInfo.next_cursor;
    const url = new URL(this.#request.url);
    if (url.searchParams.get("cursor") === cursor) {
      throw new MillwrightError(
        `${this.#request.where}: the server gave the same cursor twice, so that the list would never end`,
      );
    }
    url.searchParams.set("cursor", cursor);
    const request = { ...this.#request, url: url.href };
    const Kind = this.constructor as new (...args: ConstructorParameters<typeof Page<T, R>>) => this;
    return new Kind(readList(await this.#send(request), this.#list), this.#list, request, this.#send);
  }

  /** Iterates over this page and all after it. */
  async *iterPages(): AsyncGenerator<this, void> {
    let page = this;
    yield page;
    while (page.hasNextPage()) {
      page = await page.getNextPage();
      yield page;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    for await (const page of this.iterPages()) yield* page.items;
  }
}

/** Reads a body that is an object with a list in it. */
export function readList<R>(response: APIResponse, list: keyof R): R {
  const value = object<R>(response);
  if (!Array.isArray(value[list])) throw response.nonsense(`${String(list)} is not a list`);
  return value;
}

/** A list: await it for its first page, or iterate over the items of all pages. */
export class PagePromise<P extends AsyncIterable<T>, T> extends APIPromise<P> implements AsyncIterable<T> {
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    yield* await this;
  }
}
