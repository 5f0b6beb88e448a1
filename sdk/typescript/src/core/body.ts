/** What the bodies of answers are: streams of the platform, those of Node, or nothing that can be read in parts. */
type Body = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string> | null | undefined;

/**
 * Yields the body of an answer in parts, as they come. A polyfill of `fetch` may have a stream of Node in the
 * place of the platform's (node-fetch 2), or none (whatwg-fetch, React Native): then the body comes as a whole.
 */
export async function* parts(response: Response): AsyncGenerator<Uint8Array, void> {
  const body = response.body as Body;
  if (body && "getReader" in body) {
    yield* read(body.getReader());
  } else if (body && Symbol.asyncIterator in body) {
    for await (const part of body) yield typeof part === "string" ? new TextEncoder().encode(part) : part;
  } else if (response.status !== 204) {
    yield await whole(response);
  }
}

async function* read(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  let done = false;
  try {
    for (;;) {
      const part = await reader.read();
      done = part.done;
      if (part.done) return;
      yield part.value;
    }
  } finally {
    if (!done) void reader.cancel().catch(() => undefined);
  }
}

/** Reads a body as a whole: as bytes or, where the platform has no way to that, as text. */
async function whole(response: Response): Promise<Uint8Array> {
  if (typeof response.arrayBuffer === "function" && typeof response.clone === "function") {
    try {
      return new Uint8Array(await response.clone().arrayBuffer());
    } catch {
      // React Native has no FileReader.readAsArrayBuffer
    }
  }
  return new TextEncoder().encode(await response.text());
}
