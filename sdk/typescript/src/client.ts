import { call, type Caller } from "./core/caller.js";
import type { APIPromise } from "./core/promise.js";
import type { RequestOptions } from "./core/request.js";
import { any } from "./core/response.js";
import { type ClientOptions, resolve, type Settings } from "./core/settings.js";
import { Agent } from "./resources/agent.js";
import { Audit } from "./resources/audit.js";
import { Factories } from "./resources/factories.js";
import { FactoryFiles } from "./resources/factory-files.js";
import { Keys } from "./resources/keys.js";
import { Secrets } from "./resources/secrets.js";
import { Workers } from "./resources/workers.js";

/** Options of a call to any path. The body is sent as JSON, and a `Uint8Array` as it is. */
export interface EndpointOptions extends Omit<RequestOptions, "body"> {
  body?: unknown;
}

/**
 * The client of a millwright server. The API key and the base URL, which ends in `/api/v1`, come from the
 * options or else from the environment variables MILLWRIGHT_API_KEY and MILLWRIGHT_BASE_URL; without them
 * this is a MillwrightError.
 */
export class Millwright {
  /** Agents: their runs, conversations and skills. */
  readonly agent: Agent;
  /** Factories, and their runs, webhooks, deliveries and definition files. */
  readonly factories: Factories;
  /** Team secrets. The API accepts their values and never returns them. */
  readonly secrets: Secrets;
  /** API keys. */
  readonly keys: Keys;
  /** Who changed what. */
  readonly audit: Audit;
  /** The processes that take runs. */
  readonly workers: Workers;
  /** Definition files, checked without a factory. */
  readonly factoryFiles: FactoryFiles;
  readonly #client: Caller;

  constructor(options: ClientOptions = {}) {
    const settings = resolve(options);
    this.#client = new SecretiveCaller(settings);
    this.agent = new Agent(this.#client);
    this.factories = new Factories(this.#client);
    this.secrets = new Secrets(this.#client);
    this.keys = new Keys(this.#client);
    this.audit = new Audit(this.#client);
    this.workers = new Workers(this.#client);
    this.factoryFiles = new FactoryFiles(this.#client);
  }

  /** The base URL of the API. */
  get baseURL(): string {
    return this.#client.settings.baseURL;
  }

  /** Returns a client with some settings changed. */
  withOptions(options: ClientOptions): Millwright {
    const { settings } = this.#client;
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    return new Millwright({
      ...settings,
      ...given,
      defaultHeaders: { ...settings.defaultHeaders, ...options.defaultHeaders },
    });
  }

  /** Send a GET to any path below the base URL, for endpoints that this version does not know. */
  get<T = unknown>(path: string, options?: EndpointOptions): APIPromise<T> {
    return this.#send<T>("GET", path, options);
  }

  /** Send a POST to any path below the base URL. Its retries carry the same idempotency key. */
  post<T = unknown>(path: string, options?: EndpointOptions): APIPromise<T> {
    return this.#send<T>("POST", path, options);
  }

  /** Send a PUT to any path below the base URL. */
  put<T = unknown>(path: string, options?: EndpointOptions): APIPromise<T> {
    return this.#send<T>("PUT", path, options);
  }

  /** Send a PATCH to any path below the base URL. */
  patch<T = unknown>(path: string, options?: EndpointOptions): APIPromise<T> {
    return this.#send<T>("PATCH", path, options);
  }

  /** Send a DELETE to any path below the base URL. */
  delete<T = unknown>(path: string, options?: EndpointOptions): APIPromise<T> {
    return this.#send<T>("DELETE", path, options);
  }

  #send<T>(method: string, path: string, { body, ...options }: EndpointOptions = {}): APIPromise<T> {
    return call(this.#client, method, path, { body }, options, any<T>);
  }
}

/** Hides the settings, and so the key, when a client is printed or serialized. */
class SecretiveCaller implements Caller {
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  get settings(): Settings {
    return this.#settings;
  }
}
