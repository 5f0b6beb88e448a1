import { MillwrightError } from "./errors.js";
import { DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT } from "./retry.js";

const API_KEY = "MILLWRIGHT_API_KEY";
const BASE_URL = "MILLWRIGHT_BASE_URL";
const SERVER = "MILLWRIGHT_SERVER";
const API = "/api/v1";

/** A function that does what the global `fetch` does. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Settings of a client. */
export interface ClientOptions {
  /** The API key; by default that of the environment variable MILLWRIGHT_API_KEY. */
  apiKey?: string | undefined;
  /** The base URL, which ends in `/api/v1`; by default that of MILLWRIGHT_BASE_URL. */
  baseURL?: string | undefined;
  /** Milliseconds for one attempt, its answer included; 60,000 by default, `Infinity` for no limit. */
  timeout?: number | undefined;
  /** Number of retries; 2 by default. */
  maxRetries?: number | undefined;
  /** Headers of every request. */
  defaultHeaders?: Record<string, string> | undefined;
  /** A `fetch` of your own. */
  fetch?: Fetch | undefined;
}

/** The checked settings of a client. */
export interface Settings {
  baseURL: string;
  apiKey: string;
  timeout: number;
  maxRetries: number;
  defaultHeaders: Record<string, string>;
  fetch: Fetch;
}

/** Returns the settings, from the options and the environment. */
export function resolve(options: ClientOptions): Settings {
  return {
    baseURL: resolveBaseURL(options.baseURL ?? environmentBaseURL()),
    apiKey: resolveKey(options.apiKey ?? environment(API_KEY)),
    timeout: checkedTimeout(options.timeout ?? DEFAULT_TIMEOUT),
    maxRetries: checkedRetries(options.maxRetries ?? DEFAULT_MAX_RETRIES),
    defaultHeaders: { ...options.defaultHeaders },
    fetch: resolveFetch(options.fetch),
  };
}

/** Returns the `fetch` given, or the global one. */
export function resolveFetch(given: Fetch | undefined): Fetch {
  if (given !== undefined) return given;
  if (typeof globalThis.fetch !== "function") {
    throw new MillwrightError("no global fetch: pass one as the option fetch");
  }
  return (url, init) => globalThis.fetch(url, init);
}

function resolveKey(given: string | undefined): string {
  const key = given?.trim() ?? "";
  if (key === "") {
    throw new MillwrightError(`no API key: set the environment variable ${API_KEY}, or pass apiKey`);
  }
  if (!/^[!-~]+$/.test(key)) {
    throw new MillwrightError(
      `the API key has characters that no key has: check apiKey, or the environment variable ${API_KEY}`,
    );
  }
  return key;
}

/** Returns the base URL of the environment. MILLWRIGHT_SERVER, which the program reads, may lack the path. */
function environmentBaseURL(): string | undefined {
  const given = environment(BASE_URL);
  if (given !== undefined && given !== "") return given;
  const server = environment(SERVER)?.trim().replace(/\/+$/, "");
  if (server === undefined || server === "") return given;
  return server.endsWith(API) ? server : server + API;
}

function resolveBaseURL(given: string | undefined): string {
  const text = given?.trim() ?? "";
  const hint = `set the environment variable ${BASE_URL}, or give baseURL, such as https://millwright.example.com/api/v1`;
  if (text === "") throw new MillwrightError(`no base URL: ${hint}`);
  const url = parseURL(text);
  if (url === undefined) throw new MillwrightError(`the base URL is not an http or https URL: ${hint}`);
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new MillwrightError(`the base URL must not have credentials, a query or a fragment: ${hint}`);
  }
  const base = url.href.replace(/\/+$/, "");
  if (!base.endsWith(API)) {
    throw new MillwrightError(`the base URL must end in ${API}: ${base}${API} in place of ${base}`);
  }
  return base;
}

/** Reads an http or https URL; undefined when the text is none. */
export function parseURL(text: string): URL | undefined {
  if (!/^https?:\/\/[^/]/i.test(text)) return undefined;
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** Returns the number of retries, or throws a MillwrightError. */
export function checkedRetries(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new MillwrightError(`maxRetries must be 0 or more, not ${String(value)}`);
  }
  return value;
}

/** Returns the timeout, or throws a MillwrightError. */
export function checkedTimeout(value: number): number {
  if (typeof value !== "number" || !(value > 0)) {
    throw new MillwrightError(`timeout must be more than 0 milliseconds, not ${String(value)}`);
  }
  return value;
}

function environment(name: string): string | undefined {
  try {
    const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
    return process?.env?.[name];
  } catch {
    return undefined; // Deno, where this program was not given leave to read it
  }
}
