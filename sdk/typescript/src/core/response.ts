import { APIResponseValidationError, isRecord, statusError, without, withoutIn } from "./errors.js";

/** An answer: status, headers and body. */
export class APIResponse {
  /** The HTTP status. */
  readonly status: number;
  /** The headers, whose names are found in any case. */
  readonly headers: Headers;
  /** The body. */
  readonly bytes: Uint8Array;
  /** How many attempts failed before this answer. */
  readonly retriesTaken: number;
  readonly #where: string;
  readonly #secrets: readonly string[];

  constructor(answer: {
    status: number;
    headers: Headers;
    bytes: Uint8Array;
    retriesTaken: number;
    where: string;
    secrets: readonly string[];
  }) {
    this.status = answer.status;
    this.headers = answer.headers;
    this.bytes = answer.bytes;
    this.retriesTaken = answer.retriesTaken;
    this.#where = answer.where;
    this.#secrets = answer.secrets;
  }

  /** The server's ID of the request, as in its log. */
  get requestId(): string | undefined {
    return this.headers.get("x-request-id") ?? undefined;
  }

  /** Whether the status is a success. */
  get ok(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  /** The body as text. */
  text(): string {
    return new TextDecoder().decode(this.bytes);
  }

  /** The body as a JSON value. Throws an APIResponseValidationError if it is not JSON. */
  json<T = unknown>(): T {
    try {
      return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(this.bytes)) as T;
    } catch {
      throw this.nonsense(this.bytes.length === 0 ? "the body is empty" : "the body is not JSON");
    }
  }

  /** @internal */
  nonsense(reason: string): APIResponseValidationError {
    const kind = this.headers.get("content-type") ?? "no type";
    return new APIResponseValidationError(
      without(`${this.#where}: ${this.status} with ${kind}: ${reason}`, this.#secrets),
      {
        status: this.status,
        headers: withoutIn(this.headers, this.#secrets),
        text: without(this.text(), this.#secrets),
      },
    );
  }

  /** @internal */
  failure() {
    return statusError(
      this.#where,
      { status: this.status, headers: this.headers, text: this.text() },
      this.#secrets,
    );
  }
}

/** Reads a body that is a JSON object. */
export function object<T>(response: APIResponse): T {
  const value = response.json();
  if (!isRecord(value)) throw response.nonsense("the body is not an object");
  return value as T;
}

/** Reads a body that is a JSON string. */
export function string(response: APIResponse): string {
  const value = response.json();
  if (typeof value !== "string") throw response.nonsense("the body is not a string");
  return value;
}

/** Reads a body that is any JSON, or nothing. */
export function any<T>(response: APIResponse): T {
  return response.bytes.length === 0 ? (undefined as T) : response.json<T>();
}

/** Returns a body as it is. */
export function bytes(response: APIResponse): Uint8Array {
  return response.bytes;
}

/** Reads nothing. */
export function nothing(): void {}
