// The client on polyfills of fetch, whose answers have no stream of the platform, or none at all.

import nodeFetch from "node-fetch";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { fetch as whatwgFetch, Response as WhatwgResponse } from "whatwg-fetch";
import XMLHttpRequest from "xhr2";
import { BadRequestError, type Fetch, Millwright } from "../src/index.js";
import { answer, Hostile, KEY, RUN } from "./hostile.js";

const hostile = new Hostile();
beforeAll(async () => {
  await hostile.start();
});
afterAll(() => hostile.stop());
afterEach(() => {
  vi.unstubAllGlobals();
});

/** whatwg-fetch, which needs a browser's XMLHttpRequest. */
const whatwg: Fetch = (url, init) => {
  vi.stubGlobal("XMLHttpRequest", XMLHttpRequest);
  return whatwgFetch(url, init);
};

/** React Native's fetch is whatwg-fetch, on a platform whose answers are read as text alone. */
const reactNative: Fetch = async (url, init) => {
  const response = await whatwg(url, init);
  const text = new TextDecoder().decode(await response.arrayBuffer());
  return new WhatwgResponse(text, { status: response.status, headers: response.headers });
};

const polyfills: [string, Fetch][] = [
  ["whatwg-fetch", whatwg],
  ["React Native", reactNative],
  ["node-fetch 2", nodeFetch as unknown as Fetch],
  ["the platform's", (url, init) => globalThis.fetch(url, init)],
];

test.each(polyfills)("%s", async (_, fetch) => {
  const client = new Millwright({ apiKey: KEY, baseURL: hostile.baseURL, fetch, maxRetries: 0 });
  hostile.play(answer(200, { ...RUN, title: "Grüße, 世界" }));
  expect((await client.agent.runs.retrieve("r")).title).toBe("Grüße, 世界");

  hostile.play(answer(200, { run_id: "r", task_id: "r", state: "QUEUED" }));
  expect((await client.agent.runs.create({ prompt: "Überall" })).run_id).toBe("r");
  expect(JSON.parse(hostile.requests[0]?.body.toString() ?? "")).toEqual({ prompt: "Überall" });

  hostile.play(answer(400, { code: "invalid_request", detail: "no" }));
  await expect(client.agent.runs.retrieve("r")).rejects.toThrow(BadRequestError);

  hostile.play(answer(200, "x".repeat(300_000)));
  expect(await client.get("/long")).toHaveLength(300_000);
});

test.each(polyfills)("%s reads a stream that has ended", async (name, fetch) => {
  const client = new Millwright({ apiKey: KEY, baseURL: hostile.baseURL, fetch, maxRetries: 0 });
  const event = {
    run_id: "r",
    state: "SUCCEEDED",
    execution: 1,
    attempt: 1,
    timestamp: "2026-01-01T00:00:00Z",
  };
  const body = Buffer.from(`id: 0\nevent: state\ndata: ${JSON.stringify(event)}\n\n`);
  hostile.play(answer(200, body, "text/event-stream"));
  const seen: string[] = [];
  for await (const e of client.agent.runs.events("r")) seen.push(e.event);
  expect(seen, name).toEqual(["state"]);
});
