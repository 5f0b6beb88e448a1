// Paging, streams that go on, and waiting, against a server that misbehaves.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  APIConnectionError,
  APIResponseValidationError,
  AuthenticationError,
  ENDED_STATES,
  EventStream,
  Millwright,
  MillwrightError,
  NotFoundError,
  type RunEvent,
  RunWaitTimeoutError,
} from "../src/index.js";
import { build } from "../src/core/request.js";
import { readRunEvent } from "../src/resources/events.js";
import { endsStream } from "../src/resources/run.js";
import { answer, type Behaviour, hang, Hostile, KEY, problem, raw, reset, RUN } from "./hostile.js";

const hostile = new Hostile();
beforeAll(() => hostile.start());
afterAll(() => hostile.stop());

const client = () => new Millwright({ apiKey: KEY, baseURL: hostile.baseURL });

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

function page(names: string[], after = "", more = after !== ""): Behaviour {
  const runs = names.map((name) => ({ ...RUN, run_id: name }));
  return answer(200, { runs, page_info: { has_next_page: more, next_cursor: after } });
}

describe("lists", () => {
  test("all pages", async () => {
    hostile.play(page(["a", "b"], "c1"), problem(500, "x"), page(["c"], "c/2 &"), page([]), page(["never"]));
    const query = {
      limit: 2,
      state: ["QUEUED", "FAILED"],
      metadata: { k: "v w" },
      created_after: new Date(0),
    };
    const found = await collect(client().agent.runs.list(query));
    expect(found.map((r) => r.run_id)).toEqual(["a", "b", "c"]);
    const start =
      "limit=2&state=QUEUED&state=FAILED&metadata%5Bk%5D=v+w&created_after=1970-01-01T00%3A00%3A00.000Z";
    expect(hostile.requests.map((r) => r.path.replace("/api/v1/agent/runs?", ""))).toEqual([
      start,
      `${start}&cursor=c1`,
      `${start}&cursor=c1`,
      `${start}&cursor=c%2F2+%26`,
    ]);
  });

  test("page by page", async () => {
    hostile.play(page(["a"], "1"), page(["b"], "2"), page(["c"]));
    const first = await client().agent.runs.list();
    expect(first.runs).toBe(first.response.runs);
    expect(first.items).toHaveLength(1);
    expect(first.pageInfo.next_cursor).toBe("1");
    const second = await first.getNextPage();
    const rest = await collect(second.iterPages());
    expect([first, ...rest].map((p) => [p.runs[0]?.run_id, p.hasNextPage()])).toEqual([
      ["a", true],
      ["b", true],
      ["c", false],
    ]);
    await expect(rest[1]?.getNextPage()).rejects.toThrow("last page");
  });

  test("that would never end", async () => {
    hostile.play(page(["a"], "same"));
    await expect(collect(client().agent.runs.list())).rejects.toThrow(MillwrightError);
    expect(hostile.requests).toHaveLength(2);
  });

  test.each([
    ["an empty cursor", page(["a"], "", true)],
    ["no page_info", answer(200, { runs: [{ ...RUN, run_id: "a" }] })],
  ])("end with %s", async (_, last) => {
    hostile.play(last);
    expect((await collect(client().agent.runs.list())).map((r) => r.run_id)).toEqual(["a"]);
  });

  test("with their first answer as it came", async () => {
    hostile.play(page(["a"], "1"));
    const { data, response } = await client().agent.runs.list().withResponse();
    expect(data.runs).toHaveLength(1);
    expect(response.status).toBe(200);
  });
});

const HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n";

function state(id: number, name: string): string {
  return `id: ${id}\nevent: state\ndata: {"run_id": "r", "state": "${name}", "execution": 1, "attempt": 1}\n\n`;
}

function said(id: number, text: string): string {
  return `id: ${id}\nevent: message\ndata: {"role": "assistant", "content": [{"type": "text", "text": "${text}"}]}\n\n`;
}

function short(e: RunEvent): string {
  if (e.event === "state") return `${e.id} ${e.data.state}`;
  if (e.event === "message") return `${e.id} ${e.data.content[0]?.text}`;
  return `${e.id} ${e.name} ${JSON.stringify(e.data)}`;
}

describe("streams", () => {
  test("go on after a dropped connection", async () => {
    hostile.play(
      problem(503, "resource_unavailable"),
      raw(HEAD, ": hello\n\n", state(0, "QUEUED"), said(3, "one"), "id: 4\nevent: message\ndata: {half"),
      reset(),
      reset(HEAD),
      raw(HEAD, "retry: 1\n\n", said(4, "two"), 'id: 5\nevent: weather\ndata: {"sun":true}\n\n'),
      raw(HEAD, state(6, "SUCCEEDED"), said(7, "a last word")),
    );
    const stream = client().agent.runs.events("r");
    expect((await collect(stream)).map(short)).toEqual([
      "0 QUEUED",
      "3 one",
      "4 two",
      '5 weather {"sun":true}',
      "6 SUCCEEDED",
      "7 a last word",
    ]);
    expect(hostile.requests.map((r) => r.headers["last-event-id"])).toEqual([
      undefined,
      undefined,
      "3",
      "3",
      "3",
      "5",
    ]);
    expect(new Set(hostile.requests.map((r) => r.headers["accept"]))).toEqual(new Set(["text/event-stream"]));
    expect(stream.lastEventId).toBe("7");
    expect(stream.headers?.get("content-type")).toContain("event-stream");
  });

  test("of deliveries repeat none", async () => {
    const accepted = (id: string) =>
      `id: ${id}\nevent: delivery\ndata: {"delivery_id": "${id}", "outcome": "accepted"}\n\n`;
    const listening = "event: listening\ndata: {}\n\n";
    hostile.play(
      raw(HEAD, "id: d0\n", listening, accepted("d1"), accepted("d2")),
      raw(HEAD, listening, accepted("d1"), accepted("d2"), accepted("d3")),
      raw(HEAD, 'event: weather\ndata: {"sun":true}\n\n', accepted("d3"), accepted("d4")),
      answer(204, undefined, ""),
    );
    const { deliveries } = client().factories.webhooks;
    const found = (await collect(deliveries.events("f", "w"))).map((e) =>
      e.event === "delivery" ? e.data.delivery_id : e.event,
    );
    expect(found).toEqual(["listening", "d1", "d2", "listening", "d3", "other", "d4"]);
    const resumed = hostile.requests.map((r) => r.headers["last-event-id"]);
    expect(resumed).toEqual([undefined, "d2", "d3", "d4"]);
    hostile.play(raw(HEAD, "event: delivery\ndata: [1]\n\n"));
    await expect(collect(deliveries.stream("f", "w"))).rejects.toThrow(APIResponseValidationError);
  });

  test("are resumed at their end", async () => {
    hostile.play(answer(204, undefined, ""));
    expect(await collect(client().agent.runs.stream("r", { lastEventId: "9" }))).toEqual([]);
    expect(hostile.requests[0]?.headers["last-event-id"]).toBe("9");
  });

  test("of a run that goes on after it ended", async () => {
    hostile.play(raw(HEAD, state(1, "SUCCEEDED"), state(2, "QUEUED")), answer(204, undefined, ""));
    const found = await collect(client().agent.runs.events("r"));
    expect(found.map(short)).toEqual(["1 SUCCEEDED", "2 QUEUED"]);
    expect(hostile.requests).toHaveLength(2);
  });

  test("that only drop fail", async () => {
    hostile.play(raw(HEAD));
    await expect(collect(client().agent.runs.events("r", { maxRetries: 3 }))).rejects.toThrow(
      APIConnectionError,
    );
    expect(hostile.requests).toHaveLength(4);
  });

  test.each([
    ["404", problem(404, "x"), NotFoundError],
    ["401", problem(401, "x"), AuthenticationError],
    ["html", answer(200, Buffer.from("<html>"), "text/html"), APIResponseValidationError],
    ["half an object", raw(HEAD, "event: state\ndata: {half\n\n"), APIResponseValidationError],
    ["no state", raw(HEAD, "event: state\ndata: [1]\n\n"), APIResponseValidationError],
    ["depth", raw(HEAD, "event: new\ndata: ", "[".repeat(100_000), "\n\n"), APIResponseValidationError],
  ])("that are none: %s", async (_, bad, kind) => {
    hostile.play(bad);
    await expect(collect(client().agent.runs.events("r"))).rejects.toThrow(kind);
    expect(hostile.requests).toHaveLength(1);
  });

  const settings = () => ({
    baseURL: hostile.baseURL,
    apiKey: KEY,
    timeout: 1000,
    maxRetries: 2,
    defaultHeaders: {},
    fetch: (url: string, init: RequestInit) => fetch(url, init),
  });
  const stream = (limits: { silence?: number; longest?: number }) =>
    new EventStream<RunEvent>({
      fetch,
      request: build(settings(), "GET", "/events", {}),
      read: readRunEvent,
      ends: endsStream,
      ...limits,
    });

  test("that flood", async () => {
    hostile.play(raw(HEAD, "data: ", "x".repeat(400_000)));
    await expect(collect(stream({ longest: 100_000 }))).rejects.toThrow(APIResponseValidationError);
    hostile.play(raw(HEAD, "data: xxxxxxxx\n".repeat(40_000)));
    await expect(collect(stream({ longest: 100_000 }))).rejects.toThrow("too long");
  });

  test("that fall silent", async () => {
    hostile.play(hang(HEAD + state(0, "QUEUED")), raw(HEAD, state(1, "FAILED")));
    expect((await collect(stream({ silence: 1000 }))).map(short)).toEqual(["0 QUEUED", "1 FAILED"]);
  });

  test("that nobody reads on are closed", async () => {
    const gone = new Promise<void>((resolve) => {
      hostile.play((socket) => {
        socket.write(HEAD + state(0, "QUEUED"));
        socket.on("close", () => resolve());
        socket.on("end", () => resolve());
      });
    });
    for await (const event of client().agent.runs.events("r")) {
      expect(short(event)).toBe("0 QUEUED");
      break;
    }
    await gone;
  });

  test("that are closed end", async () => {
    hostile.play(hang(HEAD + state(0, "QUEUED")));
    const open = client().agent.runs.events("r");
    const found: string[] = [];
    for await (const event of open) {
      found.push(short(event));
      setTimeout(() => open.close()); // while it waits for the next
    }
    expect(found).toEqual(["0 QUEUED"]);
  });

  test("that are aborted throw the reason", async () => {
    hostile.play(hang(HEAD + state(0, "QUEUED")));
    const reason = new Error("changed my mind");
    const controller = new AbortController();
    const found: string[] = [];
    const reading = (async () => {
      for await (const event of client().agent.runs.events("r", { signal: controller.signal })) {
        found.push(short(event));
        setTimeout(() => controller.abort(reason)); // while it waits for the next
      }
    })();
    await expect(reading).rejects.toBe(reason);
    expect(found).toEqual(["0 QUEUED"]);
  });
});

describe("waiting", () => {
  const seen = (...states: string[]) => states.map((s) => answer(200, { ...RUN, state: s }));

  test("for every end", async () => {
    for (const end of ENDED_STATES) {
      hostile.play(...seen("QUEUED", "CLAIMED", "INPROGRESS", "SOMETHING_NEW", end));
      expect((await client().agent.runs.wait("r")).state).toBe(end);
      expect(hostile.requests).toHaveLength(5);
    }
  });

  test("for a state that is not known", async () => {
    hostile.play(answer(200, { ...RUN, state: "EXPLODED", finished_at: "2026-01-02T03:04:05Z" }));
    expect((await client().agent.runs.wait("r")).state).toBe("EXPLODED");
  });

  test("ends", async () => {
    hostile.play(...seen("INPROGRESS"));
    const e: unknown = await client()
      .agent.runs.wait("r", { maxWait: 1000, longestInterval: 5 })
      .catch((reason: unknown) => reason);
    expect(e).toBeInstanceOf(RunWaitTimeoutError);
    expect((e as RunWaitTimeoutError).run).toMatchObject({ state: "INPROGRESS" });
  });

  test("can be aborted", async () => {
    hostile.play(...seen("INPROGRESS"));
    const signal = AbortSignal.timeout(60);
    await expect(client().agent.runs.wait("r", { signal })).rejects.toMatchObject({ name: "TimeoutError" });
  });
});
