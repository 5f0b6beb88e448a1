import { retryAfter } from "./retry.js";

/** The base of every error of this package. No error holds the API key, in its text or elsewhere. */
export class MillwrightError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** A call failed. */
export class APIError extends MillwrightError {}

/** The server could not be reached, or the connection broke before the answer was complete. */
export class APIConnectionError extends APIError {}

/** The answer did not arrive in time. */
export class APITimeoutError extends APIConnectionError {}

/** The answer behind an error. */
export interface ErrorAnswer {
  status: number;
  headers: Headers;
  text: string;
}

/** The status is a success, but the body is unexpected. */
export class APIResponseValidationError extends APIError {
  /** The HTTP status. */
  readonly status: number;
  /** The headers of the answer. */
  readonly headers: Headers;
  /** The body. */
  readonly text: string;
  /** The server's ID of the request, as in its log. */
  readonly requestId: string | undefined;

  constructor(message: string, answer: ErrorAnswer) {
    super(message);
    this.status = answer.status;
    this.headers = answer.headers;
    this.text = answer.text;
    this.requestId = answer.headers.get("x-request-id") ?? undefined;
  }
}

/** The server answered with a status that is not a success. */
export class APIStatusError extends APIError {
  /** The HTTP status; 0 for a redirect that a browser hides. */
  readonly status: number;
  /** The headers of the answer. */
  readonly headers: Headers;
  /** The body. */
  readonly text: string;
  /** The body as a JSON value; undefined when it is not JSON. */
  readonly body: unknown;
  /** Kind of error, such as `"resource_not_found"`; undefined when the answer was not the API's own. */
  readonly code: string | undefined;
  /** Short text for the code. */
  readonly title: string | undefined;
  /** The exact problem. */
  readonly detail: string | undefined;
  /** What the server calls the request in its log: `trace_id`, or the header `X-Request-Id`. */
  readonly requestId: string | undefined;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** The fields that were wrong. */
  readonly errors: { field: string; message: string }[];
  /** The milliseconds after which the server asked to try again. */
  readonly retryAfter: number | undefined;

  constructor(where: string, answer: ErrorAnswer, said: string, body: unknown) {
    super(`${where}: ${answer.status}: ${said}`);
    const problem = isRecord(body) ? body : {};
    this.status = answer.status;
    this.headers = answer.headers;
    this.text = answer.text;
    this.body = body;
    this.code = string(problem["code"]);
    this.title = string(problem["title"]);
    this.detail = string(problem["detail"]);
    this.requestId = string(problem["trace_id"]) ?? answer.headers.get("x-request-id") ?? undefined;
    const retryable = problem["retryable"];
    this.retryable =
      typeof retryable === "boolean" ? retryable : [408, 429].includes(answer.status) || answer.status >= 500;
    const fields = problem["errors"];
    this.errors = (Array.isArray(fields) ? fields : [])
      .filter(isRecord)
      .map((f) => ({ field: String(f["field"] ?? ""), message: String(f["message"] ?? "") }));
    this.retryAfter = retryAfter(answer.headers);
  }
}

/** 400: the request is wrong; `errors` names the fields. */
export class BadRequestError extends APIStatusError {}
/** 401: the API key is missing, unknown, revoked or expired. */
export class AuthenticationError extends APIStatusError {}
/** 403: the role of the API key is too low. */
export class PermissionDeniedError extends APIStatusError {}
/** 404: the resource does not exist. */
export class NotFoundError extends APIStatusError {}
/** 409: the request contradicts the state. */
export class ConflictError extends APIStatusError {}
/** 413: the request is too large. */
export class PayloadTooLargeError extends APIStatusError {}
/** 422: the resource does not support the operation. */
export class UnprocessableEntityError extends APIStatusError {}
/** 429: too many requests; `retryAfter` says how long to wait. */
export class RateLimitError extends APIStatusError {}
/** 500 and above: the server failed. */
export class InternalServerError extends APIStatusError {}

/** A run did not end in the time that `wait` was given. */
export class RunWaitTimeoutError<Run = unknown> extends MillwrightError {
  /** The run as it was last seen. */
  readonly run: Run;

  constructor(message: string, run: Run) {
    super(message);
    this.run = run;
  }
}

function classOf(status: number): typeof APIStatusError {
  switch (status) {
    case 400:
      return BadRequestError;
    case 401:
      return AuthenticationError;
    case 403:
      return PermissionDeniedError;
    case 404:
      return NotFoundError;
    case 409:
      return ConflictError;
    case 413:
      return PayloadTooLargeError;
    case 422:
      return UnprocessableEntityError;
    case 429:
      return RateLimitError;
  }
  return status >= 500 ? InternalServerError : APIStatusError;
}

/**
 * Makes the error of an answer that is not a success. Whatever the body is, this does not fail. What the
 * server echoed of `secrets` is taken out.
 */
export function statusError(where: string, answer: ErrorAnswer, secrets: readonly string[]): APIStatusError {
  const text = without(answer.text, secrets);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  const problem = isRecord(body) ? body : {};
  let said = string(problem["error"]) ?? string(problem["title"]);
  if (said === undefined && (answer.status === 0 || (answer.status >= 300 && answer.status < 400))) {
    said = "a redirect, which is not followed: check the base URL";
  }
  said ??= `an answer of type ${answer.headers.get("content-type") ?? "unknown"}, which is not the API's own`;
  const headers = withoutIn(answer.headers, secrets);
  return new (classOf(answer.status))(where, { ...answer, headers, text }, without(said, secrets), body);
}

/** Returns the text with every secret in it replaced by `***`. */
export function without(text: string, secrets: readonly string[]): string {
  return secrets.reduce((t, secret) => (secret === "" ? t : t.replaceAll(secret, "***")), text);
}

/** Returns headers without the secrets, which are shown with the error that they are in. */
export function withoutIn(headers: Headers, secrets: readonly string[]): Headers {
  const echoed = [...headers].some(([, value]) => secrets.some((s) => s !== "" && value.includes(s)));
  return echoed ? new Headers([...headers].map(([name, value]) => [name, without(value, secrets)])) : headers;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function string(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
