import type { APIResponse } from "./response.js";

/**
 * The pending answer of a call. Await it for the parsed value. `withResponse` also returns the response, and
 * `asResponse` only that, without parsing the body.
 */
export class APIPromise<T> extends Promise<T> {
  readonly #response: Promise<APIResponse>;
  readonly #read: (response: APIResponse) => T | Promise<T>;

  constructor(response: Promise<APIResponse>, read: (response: APIResponse) => T | Promise<T>) {
    super((resolve) => {
      resolve(undefined as T); // what this promise is comes from then
    });
    this.#response = response;
    this.#read = read;
  }

  // What then, catch and finally return are promises like any other.
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  /** The answer: status, headers and body. */
  asResponse(): Promise<APIResponse> {
    return this.#response;
  }

  /** The parsed value and the answer. */
  async withResponse(): Promise<{ data: T; response: APIResponse }> {
    const response = await this.#response;
    return { data: await this.#read(response), response };
  }

  override then<A = T, B = never>(
    onfulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onrejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#response.then(this.#read).then(onfulfilled, onrejected);
  }

  override catch<B = never>(onrejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(undefined, onrejected);
  }

  override finally(onfinally?: (() => void) | null): Promise<T> {
    return this.then().finally(onfinally);
  }
}
