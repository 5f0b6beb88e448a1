import type { operations } from "../generated/openapi.js";
import type { PageInfo } from "../generated/types.js";
import { type Page, PagePromise, readList } from "./page.js";
import { APIPromise } from "./promise.js";
import { build, type Parts, type Request, type RequestOptions } from "./request.js";
import type { APIResponse } from "./response.js";
import type { Settings } from "./settings.js";
import { EventStream, PATIENCE, type StreamConfig } from "./stream.js";
import { send } from "./transport.js";

/** The connection of a resource to the API. */
export interface Caller {
  readonly settings: Settings;
}

/** A path, or a function that makes it, whose error rejects the call's promise. */
export type Path = string | (() => string);

type PageClass<P, T, R extends { page_info: PageInfo }> = new (
  ...args: ConstructorParameters<typeof Page<T, R>>
) => P;

/** Makes a request, sends it, and reads its answer. */
export function call<T>(
  caller: Caller,
  method: string,
  path: Path,
  parts: Parts,
  options: RequestOptions | undefined,
  read: (response: APIResponse) => T,
): APIPromise<T> {
  return new APIPromise(sending(caller, made(caller, method, path, parts, options)), read);
}

/** Requests a list. The answer is the first page, which fetches the later ones. */
export function list<P extends Page<T, R>, T, R extends { page_info: PageInfo }>(
  caller: Caller,
  path: Path,
  query: object | undefined,
  options: RequestOptions | undefined,
  Kind: PageClass<P, T, R>,
  member: keyof R,
): PagePromise<P, T> {
  const request = made(caller, "GET", path, { query }, options);
  return new PagePromise(sending(caller, request), async (response) => {
    const next = (page: Request) => sending(caller, Promise.resolve(page));
    return new Kind(readList(response, member), member, await request, next);
  });
}

/** Options of a stream. */
export interface EventsOptions extends RequestOptions {
  /** Resume after this event of an earlier stream. */
  lastEventId?: string | undefined;
}

/** Opens a stream. By default it retries more often than a call. */
export function events<T>(
  { settings }: Caller,
  path: () => string,
  { lastEventId, ...options }: EventsOptions,
  { read, ends }: Pick<StreamConfig<T>, "read" | "ends">,
): EventStream<T> {
  const maxRetries = options.maxRetries ?? Math.max(settings.maxRetries, PATIENCE);
  const request = build(settings, "GET", path(), {}, { ...options, maxRetries });
  return new EventStream({ fetch: settings.fetch, request, read, ends, lastEventId });
}

async function made(
  caller: Caller,
  method: string,
  path: Path,
  parts: Parts,
  options: RequestOptions | undefined,
): Promise<Request> {
  return build(caller.settings, method, typeof path === "string" ? path : path(), parts, options);
}

async function sending(caller: Caller, request: Promise<Request>): Promise<APIResponse> {
  return send(caller.settings.fetch, await request);
}

/** The query parameters of an operation. */
export type Query<Id extends keyof operations> = NonNullable<operations[Id]["parameters"]["query"]>;

/** The body of an operation. */
export type Body<Id extends keyof operations> = operations[Id] extends {
  requestBody?: { content: { "application/json": infer B } };
}
  ? B
  : never;
