// The decoder of event streams.

import { describe, expect, test } from "vitest";
import { Decoder, type ServerSentEvent } from "../src/core/sse.js";

const bytes = (text: string) => new TextEncoder().encode(text);
const event = (data: string, id?: string, name = "message"): ServerSentEvent => ({ event: name, data, id });

function decode(data: Uint8Array, size: () => number = () => data.length, longest?: number) {
  const decoder = new Decoder(undefined, longest);
  const events: ServerSentEvent[] = [];
  for (let at = 0; at < data.length;) {
    const end = at + size();
    events.push(...decoder.feed(data.subarray(at, end)));
    at = end;
  }
  return { events, decoder };
}

/** Numbers that are the same in every run. */
function random(seed: number) {
  return (below: number) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 8) % below;
  };
}

describe("events", () => {
  const cases: [Uint8Array, ServerSentEvent[]][] = [
    [bytes("data: a\n\n"), [event("a")]],
    [bytes("data:a\r\n\r\n"), [event("a")]],
    [bytes("data:a\r\rdata:b\r\r"), [event("a"), event("b")]],
    [bytes("data: a\ndata:  b\ndata\ndata:\n\n"), [event("a\n b\n\n")]],
    [bytes("event: state\nid: 7\ndata: {}\n\ndata: x\n\n"), [event("{}", "7", "state"), event("x", "7")]],
    [bytes(": a comment\n\nevent: nothing\n\ndata: x\n\n"), [event("x")]],
    [bytes("\ufeffdata: bom\n\n"), [event("bom")]],
    [bytes("data: ä🌍\n\n"), [event("ä🌍")]],
    [Uint8Array.of(...bytes("data: "), 0xff, 0x0a, 0x0a), [event("\ufffd")]],
    [bytes("data: never finished\n"), []],
    [bytes("id: bad\0id\ndata: x\n\n"), [event("x")]],
    [bytes("id: 1\ndata: x\n\nid\ndata: y\n\n"), [event("x", "1"), event("y", "")]],
    [bytes("unknown: x\ndata: y\u2028z\n\n"), [event("y\u2028z")]],
  ];
  test.each(cases)("%#", (data, events) => {
    expect(decode(data).events).toEqual(events);
    expect(decode(data, () => 1).events).toEqual(events);
    for (let seed = 0; seed < 20; seed++) {
      const draw = random(seed);
      expect(decode(data, () => 1 + draw(5)).events).toEqual(events);
    }
  });
});

test("retry is bounded", () => {
  expect(decode(bytes("retry: 1500\n\n")).decoder.retry).toBe(1500);
  for (const senseless of ["soon", "-1", "1e3", "", "99999999999", "\u0663"]) {
    expect(decode(bytes(`retry: ${senseless}\n\n`)).decoder.retry).toBeUndefined();
  }
});

test("an ID counts once its event is complete", () => {
  const { decoder } = decode(bytes("id: 1\ndata: x\n\nid: 2\ndata: y"));
  expect(decoder.lastId).toBe("1");
  decoder.reconnected();
  expect([...decoder.feed(bytes("data: z\n\n"))]).toEqual([event("z", "1")]);
});

test.each([`data: ${"x".repeat(1000)}`, "data: xxxxxxx\n".repeat(100), "x".repeat(1000)])(
  "floods are not kept",
  (flood) => {
    expect(() => decode(bytes(flood), () => 50, 500)).toThrow(RangeError);
  },
);

test("any bytes are decoded, however they are cut", () => {
  const draw = random(1);
  const alphabet = [...bytes("data:id event\n\r\0retry1 "), 0xff, 0xc3];
  for (let i = 0; i < 2000; i++) {
    const data = Uint8Array.from({ length: draw(80) }, () => alphabet[draw(alphabet.length)] ?? 0);
    expect(decode(data, () => 1 + draw(7)).events).toEqual(decode(data).events);
  }
});
