// A server on a local socket that answers as badly as a test asks.

import { createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

export interface Received {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Buffer;
}

export type Behaviour = (socket: Socket, request: Received) => void;

/** Plays the behaviours it is given, one for each request, and the last one from then on. */
export class Hostile {
  requests: Received[] = [];
  #script: Behaviour[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor() {
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => this.#sockets.delete(socket));
      let data = Buffer.alloc(0);
      socket.on("data", (chunk) => {
        data = Buffer.concat([data, chunk]);
        const request = read(data);
        if (request === undefined) return;
        data = Buffer.alloc(0);
        this.requests.push(request);
        const step = this.#script.length > 1 ? this.#script.shift() : this.#script[0];
        step?.(socket, request);
      });
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get baseURL(): string {
    return `${this.origin}/api/v1`;
  }

  play(...script: Behaviour[]): void {
    this.#script = script;
    this.requests = [];
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function read(data: Buffer): Received | undefined {
  const end = data.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [first = "", ...lines] = data.subarray(0, end).toString("latin1").split("\r\n");
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const length = Number(headers["content-length"] ?? 0);
  const body = data.subarray(end + 4);
  const [method = "", path = ""] = first.split(" ");
  return body.length < length ? undefined : { method, path, headers, body };
}

/** Answers properly. A body that is not bytes is sent as JSON. */
export function answer(
  status = 200,
  body: unknown = Buffer.alloc(0),
  kind = "application/json",
  headers: Record<string, string> = {},
): Behaviour {
  const content = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  const lines = [`HTTP/1.1 ${status} Whatever`, "Connection: close"];
  if (status !== 204) lines.push(`Content-Length: ${content.length}`);
  if (kind !== "") lines.push(`Content-Type: ${kind}`);
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  return (socket) => socket.end(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), content]));
}

/** Answers with problem details. */
export function problem(
  status: number,
  code: string,
  retryable = false,
  headers: Record<string, string> = {},
): Behaviour {
  const body = {
    type: `/errors/${code.replaceAll("_", "-")}`,
    title: "Title",
    status,
    detail: "said so",
    error: "Title (said so)",
    code,
    retryable,
    trace_id: "trace-1",
  };
  return answer(status, body, "application/problem+json", headers);
}

/** Sends these bytes and closes. */
export function raw(...parts: (string | Buffer)[]): Behaviour {
  return (socket) => socket.end(Buffer.concat(parts.map((p) => Buffer.from(p))));
}

/** Breaks the connection with a reset, after some bytes. */
export function reset(after = ""): Behaviour {
  return (socket) => {
    if (after === "") socket.resetAndDestroy();
    else socket.write(after, () => socket.resetAndDestroy());
  };
}

/** Sends some bytes, and then nothing. */
export function hang(after = ""): Behaviour {
  return (socket) => {
    if (after !== "") socket.write(after);
  };
}

/** Sends something now and then for as long as anybody listens. */
export function drip(before: string, part: string | Buffer = " ", every = 10): Behaviour {
  return (socket) => {
    socket.write(before);
    const timer = setInterval(() => {
      if (socket.writableNeedDrain) return;
      socket.write(part);
    }, every);
    socket.on("close", () => clearInterval(timer));
  };
}

export const KEY = "mw_0123456789abcdefghijklmnopqrstuvwxyz";

export const RUN = {
  run_id: "0199d3a4-0000-7000-8000-000000000001",
  title: "A run",
  prompt: "do",
  state: "QUEUED",
  created_at: "2026-01-02T03:04:05Z",
};
export const CREATED = { run_id: RUN.run_id, task_id: RUN.run_id, state: "QUEUED" };
