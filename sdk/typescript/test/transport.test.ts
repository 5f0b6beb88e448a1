// Retries, timeouts and errors, against a server that misbehaves.

import { inspect } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  APIConnectionError,
  APIError,
  APIResponseValidationError,
  APIStatusError,
  APITimeoutError,
  AuthenticationError,
  BadRequestError,
  type ClientOptions,
  ConflictError,
  InternalServerError,
  Millwright,
  MillwrightError,
  NotFoundError,
  PayloadTooLargeError,
  PermissionDeniedError,
  RateLimitError,
  type RunItem,
  UnprocessableEntityError,
} from "../src/index.js";
import * as retry from "../src/core/retry.js";
import {
  answer,
  type Behaviour,
  CREATED,
  drip,
  hang,
  Hostile,
  KEY,
  problem,
  raw,
  reset,
  RUN,
} from "./hostile.js";

const hostile = new Hostile();
beforeAll(() => hostile.start());
afterAll(() => hostile.stop());
beforeEach(() => void waits.splice(0));

function client(options: ClientOptions = {}): Millwright {
  return new Millwright({ apiKey: KEY, baseURL: hostile.baseURL, ...options });
}

async function failure<E>(
  promise: PromiseLike<unknown>,
  kind: abstract new (...args: never[]) => E,
): Promise<E> {
  const e: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(e).toBeInstanceOf(kind);
  return e as E;
}

describe("a class for each status", () => {
  test.each([
    [400, "invalid_request", BadRequestError],
    [401, "authentication_required", AuthenticationError],
    [403, "not_authorized", PermissionDeniedError],
    [404, "resource_not_found", NotFoundError],
    [409, "conflict", ConflictError],
    [413, "payload_too_large", PayloadTooLargeError],
    [422, "operation_not_supported", UnprocessableEntityError],
    [429, "rate_limited", RateLimitError],
    [500, "internal_error", InternalServerError],
    [503, "resource_unavailable", InternalServerError],
    [405, "invalid_request", APIStatusError],
  ])("%d %s", async (status, code, kind) => {
    hostile.play(problem(status, code, status >= 429, { "Retry-After": "7" }));
    const e = await failure(client({ maxRetries: 0 }).agent.runs.retrieve("r"), APIStatusError);
    expect(Object.getPrototypeOf(e)).toBe(kind.prototype);
    expect(e).toMatchObject({
      status,
      code,
      title: "Title",
      detail: "said so",
      requestId: "trace-1",
      retryAfter: 7000,
    });
    expect(e.retryable).toBe(status >= 429);
    expect(e.name).toBe(kind.name);
    expect(e.message).toBe(`GET /agent/runs/r: ${status}: Title (said so)`);
  });
});

test("the fields that were wrong", async () => {
  const errors = [{ field: "prompt", message: "is required" }, 7, null, {}];
  hostile.play(answer(400, { code: "invalid_request", error: "Invalid request", errors }));
  const e = await failure(client().agent.runs.create({ prompt: "" }), BadRequestError);
  expect(e.errors).toEqual([errors[0], { field: "", message: "" }]);
  expect(hostile.requests).toHaveLength(1);
});

describe("failures that may pass are tried again", () => {
  const failures: [string, Behaviour][] = [
    ...[408, 409, 429, 500, 502, 503, 599].map((s): [string, Behaviour] => [String(s), problem(s, "x")]),
    ["told to", problem(418, "x", false, { "X-Should-Retry": "true" })],
    ["reset", reset()],
    ["closed", raw("")],
    ["cut", raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")],
    ["reset in the body", reset("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")],
    ["cut chunk", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}")],
    ["nonsense", raw("nonsense\r\n\r\n")],
  ];
  test.each(failures)("%s", async (_, bad) => {
    hostile.play(bad, bad, answer(200, CREATED));
    expect((await client().agent.runs.create({ prompt: "do" })).run_id).toBe(RUN.run_id);
    expect(hostile.requests).toHaveLength(3);
    expect(new Set(hostile.requests.map((r) => r.headers["idempotency-key"])).size).toBe(1);
    expect(hostile.requests[0]?.headers["idempotency-key"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(new Set(hostile.requests.map((r) => r.body.toString())).size).toBe(1);
  });
});

describe("refusals are not tried again", () => {
  const refusals: [string, Behaviour][] = [
    ...[400, 401, 403, 404, 413, 422].map((s): [string, Behaviour] => [String(s), problem(s, "x")]),
    ["told not to", problem(409, "conflict", false, { "X-Should-Retry": "false" })],
    ["told not to, 500", problem(500, "x", false, { "X-Should-Retry": "false" })],
    ["redirect", answer(302, Buffer.alloc(0), "", { Location: "http://127.0.0.1:1/elsewhere" })],
  ];
  test.each(refusals)("%s", async (_, refusal) => {
    hostile.play(refusal);
    await failure(client().agent.runs.create({ prompt: "do" }), APIStatusError);
    expect(hostile.requests).toHaveLength(1);
  });
});

test("retries end", async () => {
  hostile.play(problem(500, "x"));
  await failure(client().agent.runs.list(), InternalServerError);
  expect(hostile.requests).toHaveLength(3);
  await failure(client().agent.runs.list({}, { maxRetries: 0 }), InternalServerError);
  expect(hostile.requests).toHaveLength(4);
  await failure(client().withOptions({ maxRetries: 1 }).agent.runs.list(), InternalServerError);
  expect(hostile.requests).toHaveLength(6);
});

test("a key for each create, or one of your own", async () => {
  hostile.play(answer(200, CREATED));
  await client().agent.runs.create({ prompt: "do" });
  await client().agent.runs.create({ prompt: "do" });
  await client().agent.runs.create({ prompt: "do" }, { idempotencyKey: "mine" });
  const [a, b, mine] = hostile.requests.map((r) => r.headers["idempotency-key"]);
  expect(a).not.toBe(b);
  expect(mine).toBe("mine");
});

describe("waits", () => {
  test("grow, and are never shorter than asked", () => {
    for (let attempt = 0; attempt < 40; attempt++) {
      const longest = Math.min(500 * 2 ** attempt, 8000);
      expect(retry.delay(attempt)).toBeGreaterThanOrEqual(0.75 * longest);
      expect(retry.delay(attempt)).toBeLessThanOrEqual(longest);
      expect(retry.delay(attempt, 5000)).toBeGreaterThanOrEqual(5000);
      expect(retry.delay(attempt, 5000)).toBeLessThanOrEqual(5500);
    }
    expect(new Set(Array.from({ length: 50 }, () => retry.delay(3))).size).toBeGreaterThan(25);
  });

  test("for as long as the server asked", async () => {
    hostile.play(problem(429, "rate_limited", true, { "Retry-After": "20" }), answer(200, CREATED));
    await client().agent.runs.create({ prompt: "do" });
    expect(waits).toHaveLength(1);
    expect(waits[0]).toBeGreaterThanOrEqual(20_000);
  });

  test("not at all when the server asked for too long", async () => {
    hostile.play(problem(429, "rate_limited", true, { "Retry-After": "3600" }));
    expect((await failure(client().agent.runs.list(), RateLimitError)).retryAfter).toBe(3_600_000);
    expect(hostile.requests).toHaveLength(1);
  });

  test.each(["", "soon", "-1", "nan", "Infinity", "1e400", "0x10", "Mon, 99 Jan 2026", "9".repeat(400)])(
    "Retry-After %j makes no sense",
    (value) => {
      expect(retry.retryAfter(new Headers({ "retry-after": value }))).toBeUndefined();
    },
  );

  test("until a date", () => {
    const now = Date.parse("2026-01-02T03:04:05Z");
    const at = (text: string) => retry.retryAfter(new Headers({ "retry-after": text }), now);
    expect(at("Fri, 02 Jan 2026 03:04:15 GMT")).toBe(10_000);
    expect(at("Fri, 02 Jan 2026 03:04:00 GMT")).toBe(0);
    expect(at("1.5")).toBe(1500);
  });
});

describe("timeouts", () => {
  test.each([
    ["silent", hang()],
    ["stuck", hang("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{")],
    ["dripping", drip("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")],
  ])("%s", async (_, slow) => {
    hostile.play(slow);
    const e = await failure(
      client({ timeout: 1000, maxRetries: 1 }).agent.runs.retrieve("r"),
      APITimeoutError,
    );
    expect(e).toBeInstanceOf(APIConnectionError);
    expect(hostile.requests).toHaveLength(2);
    await failure(client().agent.runs.retrieve("r", { timeout: 1000, maxRetries: 0 }), APITimeoutError);
    expect(hostile.requests).toHaveLength(3);
  });

  test("may be none", async () => {
    hostile.play(answer(200, RUN));
    expect((await client({ timeout: Infinity }).agent.runs.retrieve("r")).title).toBe("A run");
  });

  test("a fetch that heeds no signal", async () => {
    const deaf = () => new Promise<Response>(() => undefined);
    await failure(client({ fetch: deaf, timeout: 50, maxRetries: 0 }).get("/x"), APITimeoutError);
  });
});

describe("signals", () => {
  const reason = new Error("changed my mind");

  test("end a call", async () => {
    const controller = new AbortController();
    hostile.play(() => controller.abort(reason)); // once the request is there
    const call = client().agent.runs.retrieve("r", { signal: controller.signal });
    await expect(call).rejects.toBe(reason);
    expect(hostile.requests).toHaveLength(1);
  });

  test("end the wait between attempts", async () => {
    hostile.play(problem(429, "x", true, { "Retry-After": "60" }));
    const controller = new AbortController();
    const call = client().agent.runs.retrieve("r", { signal: controller.signal });
    setTimeout(() => controller.abort(reason), 50);
    await expect(call).rejects.toBe(reason);
  });

  test("that are aborted already send nothing", async () => {
    hostile.play(answer(200, RUN));
    await expect(client().agent.runs.retrieve("r", { signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    );
    expect(hostile.requests).toHaveLength(0);
  });

  test("leave no listeners behind", async () => {
    hostile.play(answer(200, RUN));
    const { signal } = new AbortController();
    let listeners = 0;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      listeners++;
      addEventListener.apply(signal, args);
    };
    signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      listeners--;
      removeEventListener.apply(signal, args);
    };
    await client().agent.runs.retrieve("r", { signal });
    expect(listeners).toBe(0);
  });
});

test("a server that is not there", async () => {
  const gone = await new Hostile().start();
  const { baseURL } = gone;
  await gone.stop();
  const e = await failure(client({ baseURL, maxRetries: 0 }).agent.runs.retrieve("r"), APIConnectionError);
  expect(e).not.toBeInstanceOf(APITimeoutError);
  expect(e.message).toContain("ECONNREFUSED");
});

describe("a success that makes no sense", () => {
  const cases: [string, Behaviour, string][] = [
    ["html", answer(200, Buffer.from("<html><title>Welcome"), "text/html"), "not JSON"],
    ["truncated", answer(200, Buffer.from('{"run_id": "x", "state": ')), "not JSON"],
    ["empty", answer(200), "empty"],
    ["no content", answer(204, undefined, ""), "empty"],
    ["not UTF-8", answer(200, Buffer.from([0x22, 0xff, 0xfe, 0x22])), "not JSON"],
    ["deep", answer(200, Buffer.from("[".repeat(100_000))), "not JSON"],
    ["null", answer(200, null), "not an object"],
    ["list", answer(200, [1]), "not an object"],
    ["string", answer(200, "text"), "not an object"],
  ];
  test.each(cases)("%s", async (_, bad, said) => {
    hostile.play(bad);
    const e = await failure(client().agent.runs.retrieve("r"), APIResponseValidationError);
    expect(e.message).toContain(said);
    expect(e).toBeInstanceOf(APIError);
    expect(hostile.requests).toHaveLength(1);
  });

  test("a list without a list, a string that is none", async () => {
    hostile.play(answer(200, { runs: { a: 1 } }));
    await failure(client().agent.runs.list(), APIResponseValidationError);
    hostile.play(answer(200, { run_id: "x" }));
    await failure(client().agent.runs.cancel("r"), APIResponseValidationError);
  });
});

describe("an error that makes no sense", () => {
  const bodies = [
    "<html>Bad gateway</html>",
    "",
    "{",
    "null",
    "[]",
    '"text"',
    "7",
    "[".repeat(100_000),
    '{"error": 7, "errors": 9, "retryable": "no", "code": []}',
  ];
  test.each(bodies)("%#", async (body) => {
    hostile.play(answer(502, Buffer.from(body), "text/html"));
    const e = await failure(client({ maxRetries: 0 }).agent.runs.retrieve("r"), InternalServerError);
    expect(e).toMatchObject({ status: 502, retryable: true, code: undefined, errors: [], text: body });
    expect(e.message).toContain("text/html");
    expect(e.message).not.toContain("Bad gateway");
  });
});

test("a body without end is not read on", async () => {
  hostile.play(
    drip("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", Buffer.alloc(2 ** 20, " "), 0),
  );
  const e = await failure(client().agent.runs.retrieve("r"), APIResponseValidationError);
  expect(e.message).toContain("longer than");
});

test("what is new in an answer is kept", async () => {
  hostile.play(answer(200, { ...RUN, state: "DREAMING", mood: { is: ["good"] } }));
  const run: RunItem & { mood?: unknown } = await client().agent.runs.retrieve("r");
  expect(run.state).toBe("DREAMING");
  expect(run.mood).toEqual({ is: ["good"] });
});

test("the key is nowhere to be seen", async () => {
  const c = client({ maxRetries: 0 });
  const shown: unknown[] = [
    c,
    c.agent,
    c.agent.runs,
    c.withOptions({ timeout: 5 }),
    c.agent.runs.events("r"),
  ];
  for (const bad of [
    answer(401, { error: `wrong key ${KEY}`, detail: KEY, title: KEY, code: KEY }),
    answer(502, Buffer.from(`<p>you sent ${KEY}</p>`), "text/html"),
    answer(200, Buffer.from(`<p>you sent ${KEY}</p>`), "text/html"),
    answer(200, Buffer.from("<p>"), `text/html; for=${KEY}`, { "X-Echo": `Bearer ${KEY}` }),
    answer(403, {}, `text/html; for=${KEY}`, { "X-Echo": KEY, "X-Request-Id": KEY }),
    raw("nonsense\r\n\r\n"),
    reset(),
  ]) {
    hostile.play(bad);
    shown.push(await failure(c.agent.runs.retrieve("r"), APIError));
  }
  const failing = () => Promise.reject(new TypeError(`cannot send Bearer ${KEY}`, { cause: new Error(KEY) }));
  shown.push(await failure(client({ fetch: failing, maxRetries: 0 }).get("/x"), APIConnectionError));
  hostile.play(answer(200, RUN));
  const call = c.agent.runs.retrieve("r");
  shown.push(call, await call.withResponse(), await c.agent.runs.list().asResponse());
  expect(hostile.requests[0]?.headers["authorization"]).toBe(`Bearer ${KEY}`);
  for (const thing of shown) {
    expect(inspect(thing, { depth: 10, showHidden: true })).not.toContain(KEY);
    expect(String(thing)).not.toContain(KEY);
    expect(JSON.stringify(thing) ?? "").not.toContain(KEY);
  }
});

describe("raw responses", () => {
  test("with what they mean", async () => {
    hostile.play(
      problem(503, "x"),
      answer(200, RUN, "application/json", { "X-Request-Id": "req-9", "X-Custom": "yes" }),
    );
    const { data, response } = await client().agent.runs.retrieve("r").withResponse();
    expect(data.title).toBe("A run");
    expect(response.status).toBe(200);
    expect(response.headers.get("x-custom")).toBe("yes");
    expect(response.requestId).toBe("req-9");
    expect(response.retriesTaken).toBe(1);
    expect(response.json<{ title: string }>().title).toBe("A run");
    expect(response.text()).toBe(JSON.stringify(RUN));
    expect(response.bytes).toHaveLength(JSON.stringify(RUN).length);
  });

  test("whatever their body is", async () => {
    hostile.play(answer(200, Buffer.from("<html>"), "text/html"));
    const response = await client().agent.runs.retrieve("r").asResponse();
    expect(response.text()).toBe("<html>");
    expect(() => response.json()).toThrow(APIResponseValidationError);
  });

  test("a promise like any other", async () => {
    hostile.play(answer(200, RUN));
    const call = client().agent.runs.retrieve("r");
    expect(call).toBeInstanceOf(Promise);
    let done = false;
    await call.finally(() => (done = true));
    expect(done).toBe(true);
    expect(await Promise.all([call, call.then((r) => r.title)])).toEqual([RUN, "A run"]);
    hostile.play(problem(404, "x"));
    expect(
      await client()
        .agent.runs.retrieve("r")
        .catch((e: unknown) => e),
    ).toBeInstanceOf(NotFoundError);
  });
});

test("undocumented endpoints", async () => {
  hostile.play(problem(500, "x"), answer(200, { a: 1 }));
  expect(await client().post<{ a: number }>("/new/thing", { body: { b: 2 }, query: { q: [1, 2] } })).toEqual({
    a: 1,
  });
  const [first, second] = hostile.requests;
  expect(second).toMatchObject({ method: "POST", path: "/api/v1/new/thing?q=1&q=2" });
  expect(JSON.parse(String(second?.body))).toEqual({ b: 2 });
  expect(second?.headers["idempotency-key"]).toBe(first?.headers["idempotency-key"]);
  for (const verb of ["get", "put", "patch", "delete"] as const) {
    expect(await client()[verb]("/x")).toEqual({ a: 1 });
    expect(hostile.requests.at(-1)?.method).toBe(verb.toUpperCase());
  }
  await client().put("/x", { body: new TextEncoder().encode("as it is") });
  expect(String(hostile.requests.at(-1)?.body)).toBe("as it is");
  hostile.play(answer(204, undefined, ""));
  expect(await client().delete("/x")).toBeUndefined();
  for (const path of ["http://127.0.0.1:1/elsewhere", "relative"]) {
    await failure(client().get(path), TypeError);
  }
});

test("what is sent", async () => {
  hostile.play(answer(200, CREATED));
  await client({ baseURL: `${hostile.baseURL}/`, defaultHeaders: { "X-Team": "t" } }).agent.runs.create(
    {
      prompt: "tu wäs",
      metadata: { a: "b" },
      attachments: [{ file_name: "a.bin", data: new Uint8Array([0, 255]) }],
    },
    { body: { new: 1 }, headers: { "X-New": "y" }, query: { z: true } },
  );
  const [r] = hostile.requests;
  expect(r?.path).toBe("/api/v1/agent/runs?z=true");
  expect(r?.headers).toMatchObject({ "content-type": "application/json", "x-new": "y", "x-team": "t" });
  expect(r?.headers["user-agent"]).toMatch(/^millwright-typescript\//);
  expect(JSON.parse(String(r?.body))).toEqual({
    prompt: "tu wäs",
    metadata: { a: "b" },
    attachments: [{ file_name: "a.bin", data: "AP8=" }],
    new: 1,
  });
});

test("an identifier never leads elsewhere", async () => {
  hostile.play(answer(200, RUN));
  for (const bad of ["", ".", "..", undefined, 7]) {
    await failure(client().agent.runs.retrieve(bad as string), TypeError);
    await failure(client().factories.webhooks.list(bad as string), TypeError);
  }
  await failure(client().factories.files.delete("f", "../x"), TypeError);
  await client().agent.runs.retrieve("a/../b?c#d%2e é");
  expect(hostile.requests.map((r) => r.path)).toEqual([
    "/api/v1/agent/runs/a%2F..%2Fb%3Fc%23d%252e%20%C3%A9",
  ]);
});

describe("settings", () => {
  const url = "http://127.0.0.1:1/api/v1";
  test.each([
    [{ baseURL: url }, "MILLWRIGHT_API_KEY"],
    [{ baseURL: url, apiKey: " \n" }, "MILLWRIGHT_API_KEY"],
    [{ baseURL: url, apiKey: "mw_hidden\r\nX-Lines: 1" }, "MILLWRIGHT_API_KEY"],
    [{ baseURL: url, apiKey: "mw_hiddé" }, "MILLWRIGHT_API_KEY"],
    [{ apiKey: KEY }, "MILLWRIGHT_BASE_URL"],
    [{ apiKey: KEY, baseURL: "http://host:1" }, "must end in /api/v1: http://host:1/api/v1 in place of"],
    [{ apiKey: KEY, baseURL: "http://host/mill/" }, "http://host/mill/api/v1"],
    [{ apiKey: KEY, baseURL: "http://host/api/v1/agent" }, "must end in /api/v1"],
    [{ apiKey: KEY, baseURL: "localhost:8080" }, "MILLWRIGHT_BASE_URL"],
    [{ apiKey: KEY, baseURL: "ftp://host/api/v1" }, "MILLWRIGHT_BASE_URL"],
    [{ apiKey: KEY, baseURL: "http://" }, "MILLWRIGHT_BASE_URL"],
    [{ apiKey: KEY, baseURL: "http:///x" }, "MILLWRIGHT_BASE_URL"],
    [{ apiKey: KEY, baseURL: "http://[broken" }, "MILLWRIGHT_BASE_URL"],
    [{ apiKey: KEY, baseURL: "http://user:hidden@host/api/v1" }, "MILLWRIGHT_BASE_URL"],
    [{ apiKey: KEY, baseURL: "http://host/api/v1?key=hidden" }, "MILLWRIGHT_BASE_URL"],
    [{ apiKey: KEY, baseURL: url, maxRetries: -1 }, "maxRetries"],
    [{ apiKey: KEY, baseURL: url, maxRetries: 1.5 }, "maxRetries"],
    [{ apiKey: KEY, baseURL: url, timeout: 0 }, "timeout"],
    [{ apiKey: KEY, baseURL: url, timeout: Number.NaN }, "timeout"],
  ])("%#: %j", (options: ClientOptions, said) => {
    let message = "";
    try {
      new Millwright(options);
    } catch (e) {
      expect(e).toBeInstanceOf(MillwrightError);
      message = (e as Error).message;
    }
    expect(message).toContain(said);
    expect(message).not.toMatch(/hidd|mw_0/);
  });

  test("from the environment", async () => {
    hostile.play(answer(200, {}));
    process.env["MILLWRIGHT_API_KEY"] = " mw_from_the_environment\n";
    process.env["MILLWRIGHT_BASE_URL"] = hostile.baseURL;
    try {
      await new Millwright().get("/x");
      await new Millwright({ apiKey: KEY }).withOptions({ apiKey: undefined, maxRetries: 0 }).get("/x");
    } finally {
      delete process.env["MILLWRIGHT_API_KEY"];
      delete process.env["MILLWRIGHT_BASE_URL"];
    }
    const keys = hostile.requests.map((r) => r.headers["authorization"]);
    expect(keys).toEqual(["Bearer mw_from_the_environment", `Bearer ${KEY}`]);
  });

  test.each(["", "/", "/api/v1"])("from the variable of the program, with the path %j", async (path) => {
    hostile.play(answer(200, {}));
    process.env["MILLWRIGHT_SERVER"] = hostile.baseURL.replace(/\/api\/v1$/, "") + path;
    try {
      await new Millwright({ apiKey: KEY }).get("/x");
    } finally {
      delete process.env["MILLWRIGHT_SERVER"];
    }
    expect(hostile.requests.map((r) => r.path)).toEqual(["/api/v1/x"]);
  });

  test("a fetch of one's own", async () => {
    const seen: string[] = [];
    const own = (url: string) => {
      seen.push(url);
      return Promise.resolve(new Response('{"a": 1}'));
    };
    expect(await client({ fetch: own }).get("/x")).toEqual({ a: 1 });
    expect(seen).toEqual([`${hostile.baseURL}/x`]);
  });
});
