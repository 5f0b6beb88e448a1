import { parts } from "./body.js";
import {
  APIConnectionError,
  type APIError,
  APIResponseValidationError,
  APIStatusError,
  APITimeoutError,
  without,
} from "./errors.js";
import type { Request } from "./request.js";
import { APIResponse } from "./response.js";
import * as retry from "./retry.js";
import type { Fetch } from "./settings.js";

/** How many bytes of an answer are read. */
const LONGEST_BODY = 64 * 2 ** 20;

/** Sends a request, with retries. */
export async function send(fetch: Fetch, request: Request): Promise<APIResponse> {
  for (let attempt = 0; ; attempt++) {
    let error: APIError;
    try {
      const response = await attemptOnce(fetch, request, attempt);
      if (response.ok) return response;
      error = response.failure();
    } catch (e) {
      if (!(e instanceof APIConnectionError)) throw e;
      error = e;
    }
    await pause(request, attempt, error);
  }
}

/** Waits for the next attempt, or throws the error. */
export async function pause(
  request: Request,
  attempt: number,
  error: APIError,
  atLeast?: number,
): Promise<void> {
  let asked = atLeast;
  if (error instanceof APIStatusError) {
    asked = error.retryAfter ?? atLeast;
    if (!retry.isWorthRetrying(error.status, error.headers)) throw error;
  } else if (!(error instanceof APIConnectionError)) {
    throw error;
  }
  const wait = retry.delay(attempt, asked);
  if (attempt >= request.maxRetries || wait === undefined) throw error;
  await retry.sleep(wait, request.signal);
}

async function attemptOnce(fetch: Fetch, request: Request, attempt: number): Promise<APIResponse> {
  const limit = new Limit(request, request.timeout);
  try {
    const response = await start(fetch, request, limit);
    return await limit.during(readAll(response, request, attempt));
  } catch (e) {
    throw limit.explain(e);
  } finally {
    limit.lift();
  }
}

/** Sends a request and returns the answer before its body. */
export async function start(fetch: Fetch, request: Request, limit: Limit): Promise<Response> {
  const headers = request.sign ? { ...request.headers, ...(await request.sign()) } : request.headers;
  const init: RequestInit = { method: request.method, headers, signal: limit.signal, redirect: "manual" };
  if (request.content !== undefined) init.body = request.content as BodyInit;
  return limit.during(fetch(request.url, init));
}

/** Reads the body of an answer, up to a limit. */
export async function readAll(response: Response, request: Request, attempt: number): Promise<APIResponse> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const part of parts(response)) {
    chunks.push(part);
    size += part.length;
    if (size > LONGEST_BODY) {
      throw new APIResponseValidationError(
        `${request.where}: ${response.status}: the body is longer than ${LONGEST_BODY} bytes`,
        {
          status: response.status,
          headers: response.headers,
          text: "",
        },
      );
    }
  }
  let bytes = chunks[0] ?? new Uint8Array();
  if (chunks.length > 1) {
    bytes = new Uint8Array(size);
    let at = 0;
    for (const chunk of chunks) {
      bytes.set(chunk, at);
      at += chunk.length;
    }
  }
  const { status, headers } = response;
  return new APIResponse({
    status,
    headers,
    bytes,
    retriesTaken: attempt,
    where: request.where,
    secrets: request.secrets,
  });
}

/** The longest that a timer of JavaScript can wait. */
const FOREVER = 2 ** 31 - 1;

/** Ends an attempt at its timeout, or when the caller's signal aborts. */
export class Limit {
  readonly #controller = new AbortController();
  readonly #request: Request;
  readonly #abort = () => {
    this.#controller.abort(this.#request.signal?.reason);
  };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timedOut = false;

  constructor(request: Request, timeout: number) {
    this.#request = request;
    request.signal?.throwIfAborted();
    request.signal?.addEventListener("abort", this.#abort, { once: true });
    this.restart(timeout);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Restarts the timeout. */
  restart(timeout: number): void {
    clearTimeout(this.#timer);
    if (timeout > FOREVER) return;
    this.#timer = setTimeout(() => {
      this.#timedOut = true;
      this.#controller.abort();
    }, timeout);
  }

  /** Waits for a promise up to the limit, even if the `fetch` in use ignores signals. */
  async during<T>(promise: Promise<T>): Promise<T> {
    const { signal } = this;
    let abort: (() => void) | undefined;
    const aborted = new Promise<never>((_, reject) => {
      abort = () => {
        reject(new Error("aborted"));
      };
      if (signal.aborted) abort();
      else signal.addEventListener("abort", abort, { once: true });
    });
    try {
      return await Promise.race([promise, aborted]);
    } finally {
      if (abort) signal.removeEventListener("abort", abort);
    }
  }

  /** Ends the limit. */
  lift(): void {
    clearTimeout(this.#timer);
    this.#request.signal?.removeEventListener("abort", this.#abort);
  }

  /** Ends the connection. */
  cut(): void {
    this.lift();
    this.#controller.abort();
  }

  /** Describes an error without the platform's text, which may contain the request. */
  explain(e: unknown): unknown {
    const { signal, where, secrets } = this.#request;
    if (signal?.aborted) return signal.reason;
    if (this.#timedOut) return new APITimeoutError(`${where}: no complete answer in time`);
    if (e instanceof APIResponseValidationError || e instanceof APIStatusError) return e;
    return new APIConnectionError(
      without(`${where}: cannot reach the server, or the connection broke: ${reason(e)}`, secrets),
    );
  }
}

function reason(e: unknown): string {
  if (!(e instanceof Error)) return "no reason given";
  const { cause } = e;
  const code = cause instanceof Error ? ((cause as { code?: unknown }).code ?? cause.message) : undefined;
  return typeof code === "string" && code !== "" ? `${e.message} (${code})` : e.message;
}
