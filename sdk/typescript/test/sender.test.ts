// Signing and sending deliveries.

import { createHmac } from "node:crypto";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  APIError,
  AuthenticationError,
  BadRequestError,
  MillwrightError,
  NotFoundError,
  PayloadTooLargeError,
  sign,
  WebhookSender,
  type WebhookSenderOptions,
  webhooks,
} from "../src/index.js";
import { answer, Hostile, problem, reset } from "./hostile.js";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const TOKEN = "tok-0123456789abcdef";
const ACCEPTED = answer(202, { delivery_id: "dlv_1" });

const hostile = new Hostile();
beforeAll(() => hostile.start());
afterAll(() => hostile.stop());
const url = () => `${hostile.origin}/webhooks/w/wh_1`;

test("the vector of Standard Webhooks", async () => {
  const about = { deliveryId: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1614265330 };
  const body = '{"test": 2432232314}';
  const headers = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  expect(await sign(body, { secret: SECRET, ...about })).toEqual(headers);
  expect(await sign(new TextEncoder().encode(body), { secret: SECRET.slice(6), ...about })).toEqual(headers);
});

describe("verifying", () => {
  const body = '{"test": 2432232314}';
  const headers = {
    "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  const now = 1614265330;

  test("the vector of Standard Webhooks", async () => {
    for (const at of [now, now + 300, now - 300]) {
      expect(await webhooks.verify(body, headers, SECRET, { now: at })).toEqual({ test: 2432232314 });
    }
    const bytes = new TextEncoder().encode(body);
    expect(await webhooks.verify(bytes, new Headers(headers), SECRET.slice(6), { now })).toBeTruthy();
    const several = { ...headers, "webhook-signature": `v1,AAAA v1a,x ${headers["webhook-signature"]}` };
    expect(await webhooks.verify(body, several, SECRET, { now })).toBeTruthy();
  });

  test.each([
    [{}, now + 301, "too old"],
    [{}, now - 301, "too far in the future"],
    [{ "webhook-timestamp": "1614265331" }, now, "no signature"],
    [{ "webhook-timestamp": "-1" }, now, "not a number"],
    [{ "Webhook-Id": "msg_other" }, now, "no signature"],
    [{ "Webhook-Id": "" }, now, "webhook-id is missing"],
    [{ "webhook-signature": "v1,!!!" }, now, "no signature"],
    [{ "webhook-signature": "v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" }, now, "no signature"],
  ])("refuses %j at %i", async (change, at, message) => {
    const refused = webhooks.verify(body, { ...headers, ...change }, SECRET, { now: at });
    await expect(refused).rejects.toThrow(webhooks.WebhookVerificationError);
    await expect(refused).rejects.toThrow(message);
  });

  test("refuses another body, another secret, and what is no JSON", async () => {
    await expect(webhooks.verify(`${body} `, headers, SECRET, { now })).rejects.toThrow("no signature");
    const other = `whsec_${"QUFB".repeat(8)}`;
    await expect(webhooks.verify(body, headers, other, { now })).rejects.toThrow("no signature");
    const signed = await sign("no JSON", { secret: SECRET, deliveryId: "msg_1", timestamp: now });
    await expect(webhooks.verify("no JSON", signed, SECRET, { now })).rejects.toThrow("not JSON");
  });
});

test.each([
  "",
  "whsec_",
  "whsec_c2hvcnQ=",
  "whsec_!!!notbase64!!!notbase64!!!",
  `whsec_${"QUFB".repeat(40)}`,
])("a secret that cannot sign is not shown: %#", (secret) => {
  let message = "";
  try {
    new WebhookSender("http://h/webhooks/w/wh_1", { signingSecret: secret });
  } catch (e) {
    message = (e as Error).message;
  }
  expect(message).toContain("signing secret");
  if (secret.length > 8) expect(message).not.toContain(secret);
});

test.each(["", "with space", "line\nend", "é", "a.b"])(
  "the delivery ID %j cannot be sent",
  async (deliveryId) => {
    await expect(sign("{}", { secret: SECRET, deliveryId })).rejects.toThrow(MillwrightError);
  },
);

test("a signed delivery", async () => {
  hostile.play(ACCEPTED);
  const receipt = await new WebhookSender(url(), { signingSecret: SECRET }).send(
    { a: "ä" },
    { deliveryId: "evt-1" },
  );
  expect(receipt).toEqual({ delivery_id: "dlv_1" });
  const [r] = hostile.requests;
  expect(JSON.parse(String(r?.body))).toEqual({ a: "ä" });
  expect(r?.headers).not.toHaveProperty("authorization");
  const mac = createHmac("sha256", Buffer.from(SECRET.slice(6), "base64"));
  mac.update(`evt-1.${r?.headers["webhook-timestamp"]}.`).update(r?.body ?? "");
  expect(r?.headers["webhook-signature"]).toBe(`v1,${mac.digest("base64")}`);
});

test("a bearer delivery keeps its name when it is sent again", async () => {
  hostile.play(reset(), problem(503, "x"), answer(202, { delivery_id: "dlv_1", duplicate: true, more: 1 }));
  const receipt = await new WebhookSender(url(), { token: TOKEN }).send(new TextEncoder().encode("[1,  2]"));
  expect(receipt).toEqual({ delivery_id: "dlv_1", duplicate: true, more: 1 });
  expect(hostile.requests).toHaveLength(3);
  const same = (f: (r: (typeof hostile.requests)[0]) => unknown) => [...new Set(hostile.requests.map(f))];
  expect(same((r) => String(r.body))).toEqual(["[1,  2]"]);
  expect(same((r) => r.headers["authorization"])).toEqual([`Bearer ${TOKEN}`]);
  expect(same((r) => r.headers["x-service-delivery-id"])).toHaveLength(1);
});

test.each([
  [400, BadRequestError],
  [401, AuthenticationError],
  [404, NotFoundError],
  [413, PayloadTooLargeError],
])("refusal %d", async (status, kind) => {
  hostile.play(answer(status, { error: "no" }));
  await expect(new WebhookSender(url(), { token: TOKEN }).send({})).rejects.toThrow(kind);
  expect(hostile.requests).toHaveLength(1);
});

describe("credentials are nowhere to be seen", () => {
  const cases: [string, WebhookSenderOptions][] = [
    ["/webhooks/w/wh_1", { token: TOKEN }],
    ["/webhooks/w/wh_1", { signingSecret: SECRET }],
    [`/webhooks/w/wh_1/${TOKEN}`, {}],
    [`/behind/a/proxy/webhooks/w/wh_1/${TOKEN}?x=y`, {}],
  ];
  test.each(cases)("%#", async (path, options) => {
    const sender = new WebhookSender(hostile.origin + path, { ...options, maxRetries: 0 });
    const shown: unknown[] = [sender];
    const said = `no ${TOKEN} ${SECRET}`;
    for (const bad of [answer(401, Buffer.from(said), "text/plain"), answer(401, { error: said }), reset()]) {
      hostile.play(bad);
      const e: unknown = await sender.send({}).catch((reason: unknown) => reason);
      expect(e).toBeInstanceOf(APIError);
      shown.push(e);
    }
    const credential = options.token ?? options.signingSecret ?? TOKEN;
    for (const thing of shown)
      expect(inspect(thing, { depth: 10, showHidden: true })).not.toContain(credential);
    hostile.play(ACCEPTED);
    await sender.send({});
    expect(hostile.requests[0]?.path).toBe(path);
  });
});

test.each([
  "",
  "hooks.example.com/x",
  "ftp://h/x",
  "http://u:p@h/x",
  "http://[",
  "http://h/webhooks/w/wh_1/{token}",
])("the URL %j leads nowhere", (to) => {
  expect(() => new WebhookSender(to)).toThrow(MillwrightError);
});

test("one way of authentication", () => {
  expect(() => new WebhookSender(url(), { token: "a", signingSecret: SECRET })).toThrow("not both");
  expect(() => new WebhookSender(url(), { token: "a\nb" })).toThrow("ASCII");
});
