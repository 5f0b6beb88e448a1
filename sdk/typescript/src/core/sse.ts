// Server-sent events, as the HTML standard writes them: bytes in, events out.

/** One event of a stream. */
export interface ServerSentEvent {
  /** The type; `"message"` by default. */
  event: string;
  /** The data, usually JSON. */
  data: string;
  /** ID to resume from after this event. */
  id: string | undefined;
}

/** Maximum number of characters of an event, and of a line. A longer one ends the stream. */
const LONGEST_EVENT = 16 * 2 ** 20;

/** Turns the bytes of a stream into events. Drops incomplete events. */
export class Decoder {
  /** The last ID that the stream gave. */
  lastId: string | undefined;
  /** Milliseconds that the server asks to wait before a new connection. */
  retry: number | undefined;

  readonly #longest: number;
  #text = new TextDecoder();
  #rest: string[] = [];
  #restLength = 0;
  #skipNewline = false;
  #id: string | undefined;
  #event = "";
  #data: string[] = [];
  #size = 0;

  constructor(lastId?: string, longest = LONGEST_EVENT) {
    this.lastId = this.#id = lastId;
    this.#longest = longest;
  }

  /** Forgets the incomplete event of the last connection. */
  reconnected(): void {
    this.#text = new TextDecoder();
    this.#rest = [];
    this.#restLength = this.#size = 0;
    this.#skipNewline = false;
    this.#id = this.lastId;
    this.#event = "";
    this.#data = [];
  }

  /** Feeds bytes, and returns the completed events. Throws a RangeError if an event is too long. */
  *feed(chunk: Uint8Array): Generator<ServerSentEvent, void> {
    let text = this.#text.decode(chunk, { stream: true });
    if (this.#skipNewline && text !== "") {
      this.#skipNewline = false;
      if (text.startsWith("\n")) text = text.slice(1);
    }
    if (text.endsWith("\r")) this.#skipNewline = true; // the chunk may end between the two characters of a line end
    const lines = text.split(/\r\n|\r|\n/);
    const rest = lines.pop() ?? "";
    for (const line of lines) {
      const event = this.#line(this.#rest.length > 0 ? this.#rest.join("") + line : line);
      this.#rest = [];
      this.#restLength = 0;
      if (event) yield event;
    }
    if (rest !== "") {
      this.#rest.push(rest);
      this.#restLength += rest.length;
      if (this.#restLength > this.#longest) throw new RangeError("an event is too long");
    }
  }

  #line(line: string): ServerSentEvent | undefined {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (name === "data") {
      this.#size += value.length + 1;
      if (this.#size > this.#longest) throw new RangeError("an event is too long");
      this.#data.push(value);
    } else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^\d{1,9}$/.test(value)) this.retry = Number(value);
    return undefined;
  }

  #dispatch(): ServerSentEvent | undefined {
    this.lastId = this.#id;
    const event = this.#event;
    const data = this.#data;
    this.#event = "";
    this.#data = [];
    this.#size = 0;
    return data.length === 0
      ? undefined
      : { event: event || "message", data: data.join("\n"), id: this.lastId };
  }
}
