import { parts } from "./body.js";
import { APIConnectionError, APIError, APIResponseValidationError } from "./errors.js";
import type { Request } from "./request.js";
import type { Fetch } from "./settings.js";
import { Decoder, type ServerSentEvent } from "./sse.js";
import { Limit, pause, readAll, start } from "./transport.js";

/** Milliseconds of silence, at the least, after which a stream counts as dropped. Servers break it more often. */
const SILENCE = 60_000;

/** Reconnects in a row before the stream fails; an event resets the count. */
export const PATIENCE = 5;

/** How a stream is read, and what can be changed in tests. */
export interface StreamConfig<T> {
  fetch: Fetch;
  request: Request;
  /** Reads an event; null when it repeats an earlier one, undefined when it is not what was asked for. */
  read: (event: ServerSentEvent) => T | null | undefined;
  /** Whether a stream that closes after this event is complete; undefined if unknown. */
  ends: (value: T) => boolean | undefined;
  lastEventId?: string | undefined;
  silence?: number | undefined;
  longest?: number | undefined;
}

/**
 * Events as they happen. After a lost connection the stream reconnects and resumes.
 * Iterate over it with `for await`; leaving the loop closes the connection. The request is sent when the
 * iteration begins.
 */
export class EventStream<T> implements AsyncIterable<T> {
  /** The headers of the latest connection; undefined before the first. */
  headers: Headers | undefined;
  readonly #config: StreamConfig<T>;
  readonly #decoder: Decoder;
  #limit: Limit | undefined;
  #closed = false;

  constructor(config: StreamConfig<T>) {
    this.#config = config;
    this.#decoder = new Decoder(config.lastEventId, config.longest);
  }

  /** The ID from which another stream can resume. */
  get lastEventId(): string | undefined {
    return this.#decoder.lastId;
  }

  /** Closes the connection. The iteration ends. */
  close(): void {
    this.#closed = true;
    this.#limit?.cut();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    const { request, ends } = this.#config;
    let failures = 0;
    let complete = false;
    while (!this.#closed) {
      let error: APIError;
      try {
        const chunks = await this.#connect();
        if (chunks === undefined) return;
        this.#decoder.reconnected();
        for await (const chunk of chunks) {
          for (const event of this.#decoder.feed(chunk)) {
            failures = 0;
            const value = this.#read(event);
            if (value === null) continue;
            complete = ends(value) ?? complete;
            yield value;
            if (this.#closed) return;
          }
        }
        if (complete) return;
        error = new APIConnectionError(`${request.where}: the stream ended too early`);
      } catch (e) {
        if (this.#closed) return;
        const said = this.#explain(e);
        if (!(said instanceof APIError)) throw said;
        error = said;
      } finally {
        this.#limit?.cut();
      }
      await pause(request, failures++, error, this.#decoder.retry);
    }
  }

  #explain(e: unknown): unknown {
    if (e instanceof RangeError) return this.#nonsense("an event of the stream is too long");
    return e instanceof APIError ? e : this.#limit ? this.#limit.explain(e) : e;
  }

  #nonsense(reason: string): APIResponseValidationError {
    const headers = this.headers ?? new Headers();
    return new APIResponseValidationError(`${this.#config.request.where}: ${reason}`, {
      status: 200,
      headers,
      text: "",
    });
  }

  #read(event: ServerSentEvent): T | null {
    const value = this.#config.read(event);
    if (value === undefined)
      throw this.#nonsense(`an event of type ${JSON.stringify(event.event)} is not what was asked for`);
    return value;
  }

  /** Opens the stream where it stopped; undefined at its end. */
  async #connect(): Promise<AsyncGenerator<Uint8Array, void> | undefined> {
    const { fetch, request } = this.#config;
    const headers: Record<string, string> = { ...request.headers, accept: "text/event-stream" };
    if (this.#decoder.lastId !== undefined) headers["last-event-id"] = this.#decoder.lastId;
    const limit = (this.#limit = new Limit(request, request.timeout));
    const response = await start(fetch, { ...request, headers }, limit);
    this.headers = response.headers;
    if (response.status === 204) return undefined;
    const kind = response.headers.get("content-type") ?? "";
    if (response.status === 200 && kind.split(";")[0]?.trim().toLowerCase() === "text/event-stream") {
      return this.#chunks(response, limit);
    }
    const whole = await limit.during(readAll(response, request, 0));
    if (!whole.ok) throw whole.failure();
    throw whole.nonsense("not a stream of events");
  }

  async *#chunks(response: Response, limit: Limit): AsyncGenerator<Uint8Array, void> {
    const patience = Math.max(this.#config.request.timeout, this.#config.silence ?? SILENCE);
    const body = parts(response);
    for (;;) {
      limit.restart(patience);
      const part = await limit.during(body.next());
      if (part.done) return;
      yield part.value;
    }
  }
}
