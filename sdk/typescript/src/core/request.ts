import { VERSION } from "../version.js";
import { checkedRetries, checkedTimeout, type Settings } from "./settings.js";

/** Options of one call; they override those of the client. */
export interface RequestOptions {
  /** Milliseconds for one attempt, its answer included; `Infinity` for no limit. */
  timeout?: number | undefined;
  /** Number of retries after the first attempt. */
  maxRetries?: number | undefined;
  /** Ends the call, also between retries; the call then throws the signal's reason. */
  signal?: AbortSignal | null | undefined;
  /** Makes a repeated create return the first answer. Generated for every POST without one. */
  idempotencyKey?: string | undefined;
  /** Additional headers; they replace defaults of the same name. */
  headers?: Record<string, string> | undefined;
  /** Query parameters that this version does not know. */
  query?: Record<string, unknown> | undefined;
  /** Members of the body that this version does not know. */
  body?: Record<string, unknown> | undefined;
}

/** A request, for all of its attempts. */
export interface Request {
  method: string;
  url: string;
  /** The method and path, without query, for errors. */
  where: string;
  headers: Record<string, string>;
  content?: string | Uint8Array | undefined;
  timeout: number;
  maxRetries: number;
  signal?: AbortSignal | null | undefined;
  secrets: readonly string[];
  /** Makes the headers that differ between attempts. */
  sign?: (() => Promise<Record<string, string>>) | undefined;
}

/** The arguments of a method. */
export interface Parts {
  query?: object | undefined;
  body?: unknown;
  headers?: Record<string, string>;
}

/** Makes a request to a path below the base URL. */
export function build(
  settings: Settings,
  method: string,
  path: string,
  parts: Parts,
  options: RequestOptions = {},
): Request {
  if (!path.startsWith("/"))
    throw new TypeError(
      `a path begins with a slash and lies below the base URL, unlike ${JSON.stringify(path)}`,
    );
  let url = settings.baseURL + path;
  const query = encodeQuery({ ...parts.query, ...options.query });
  if (query !== "") url += (path.includes("?") ? "&" : "?") + query;
  const headers: Record<string, string> = {
    accept: "application/json",
    authorization: `Bearer ${settings.apiKey}`,
    ...userAgent(),
    ...lowered(settings.defaultHeaders),
  };
  let content: string | Uint8Array | undefined;
  if (parts.body instanceof Uint8Array) content = parts.body;
  else if (parts.body !== undefined || options.body !== undefined) {
    content = encodeJSON(
      options.body === undefined ? parts.body : { ...(parts.body as object | undefined), ...options.body },
    );
    headers["content-type"] = "application/json";
  }
  if (method === "POST") headers["idempotency-key"] = options.idempotencyKey ?? uuid();
  return {
    method,
    url,
    where: `${method} ${path.split("?")[0]}`,
    headers: { ...headers, ...lowered(parts.headers), ...lowered(options.headers) },
    content,
    timeout: checkedTimeout(options.timeout ?? settings.timeout),
    maxRetries: checkedRetries(options.maxRetries ?? settings.maxRetries),
    signal: options.signal,
    secrets: [settings.apiKey],
  };
}

/** The name of this package, where it may be sent: browsers have their own, and ask the server first. */
export function userAgent(): Record<string, string> {
  return "document" in globalThis ? {} : { "user-agent": `millwright-typescript/${VERSION}` };
}

function lowered(headers: Record<string, string> | undefined): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

/**
 * A path of fixed text and identifiers, made when it is needed. An identifier that would lead to another
 * endpoint is refused then.
 */
export function path(text: TemplateStringsArray, ...identifiers: string[]): () => string {
  return () => text.reduce((done, part, i) => done + segment(identifiers[i - 1]) + part);
}

function segment(value: unknown): string {
  if (typeof value !== "string" || value === "" || value === "." || value === "..") {
    throw new TypeError(`an identifier must be a non-empty string, not ${JSON.stringify(value)}`);
  }
  return encodeURIComponent(value);
}

/** Makes a path of several segments, such as that of a definition file. */
export function segments(value: string): string {
  return value.split("/").map(segment).join("/");
}

/** Writes query parameters: a list repeats its name, an object is `name[key]`, undefined and null are left out. */
export function encodeQuery(query: object): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const v of value) add(pairs, name, v);
    else if (typeof value === "object" && value !== null && !(value instanceof Date)) {
      for (const [key, v] of Object.entries(value)) add(pairs, `${name}[${key}]`, v);
    } else add(pairs, name, value);
  }
  return pairs.toString();
}

function add(pairs: URLSearchParams, name: string, value: unknown): void {
  if (value === undefined || value === null) return;
  pairs.append(name, value instanceof Date ? value.toISOString() : String(value));
}

/** Writes a value as JSON: bytes in base64, dates in RFC 3339. */
export function encodeJSON(value: unknown): string {
  const text = JSON.stringify(value, (_, v: unknown) => (v instanceof Uint8Array ? base64(v) : v)) as
    string | undefined;
  if (text === undefined) throw new TypeError("this value has no JSON form");
  return text;
}

/** Writes bytes in base64. */
export function base64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}

/** Generates a UUID, also on pages without TLS, which lack `crypto.randomUUID`. */
export function uuid(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
}
