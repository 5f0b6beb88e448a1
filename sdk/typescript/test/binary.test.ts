// Every method, against the real program.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import {
  APIStatusError,
  AuthenticationError,
  BadRequestError,
  type ClientOptions,
  ConflictError,
  type Factory,
  Millwright,
  NotFoundError,
  PayloadTooLargeError,
  PermissionDeniedError,
  type RunAgentResponse,
  RunWaitTimeoutError,
  UnprocessableEntityError,
  type Webhook,
  WebhookSender,
  webhooks,
} from "../src/index.js";
import { answer, Hostile } from "./hostile.js";
import { KEY, PUSH_SECRET, REPOSITORY, Server } from "./server.js";

type Operation = { operationId: string; deprecated?: boolean };
const document = parse(readFileSync(join(REPOSITORY, "api/openapi.yaml"), "utf8")) as {
  paths: Record<string, Record<string, Operation>>;
};
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item)
    .filter(([, op]) => !op.deprecated)
    .map(([method, op]) => ({
      id: op.operationId,
      method: method.toUpperCase(),
      pattern: new RegExp(`^${path.replace(/\{path\}/g, ".+").replace(/\{\w+\}/g, "[^/]+")}$`),
    })),
);
const called = new Set<string>();

let server: Server;

function client(options: ClientOptions = {}): Millwright {
  const noting = (url: string, init: RequestInit) => {
    const path = new URL(url).pathname;
    const found = operations.find((op) => op.method === init.method && op.pattern.test(path));
    if (found) called.add(found.id);
    return fetch(url, init);
  };
  return new Millwright({ apiKey: KEY, baseURL: server.baseURL, fetch: noting, ...options });
}

beforeAll(async () => {
  server = await Server.start();
  await client().secrets.set("GIT_PUSH", { value: PUSH_SECRET });
});
afterAll(() => server?.stop());

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

async function factory(name: string): Promise<Factory> {
  for await (const f of client().factories.list()) if (f.name === name) return f;
  throw new Error(`no factory ${name}`);
}

async function webhook(factoryUid: string, name: string): Promise<Webhook> {
  for await (const w of client().factories.webhooks.list(factoryUid)) if (w.name === name) return w;
  throw new Error(`no webhook ${name}`);
}

let count = 0;
/** A name that no other test uses. */
const once = (name: string) => `${name}-ts-${++count}`;
const ended = (runId: string) =>
  client().agent.runs.wait(runId, { maxWait: 60_000, longestInterval: 20_000 });

test("a run from its creation to its end", async () => {
  const name = once("life");
  const { runs, conversations } = client().agent;
  const made = await runs.create({
    prompt: "Say hello",
    title: "A greeting",
    config: { name, model_id: "m-1", mcp_servers: { a: { url: "http://x", headers: { k: "v" } } } },
    metadata: { team: "payments" },
    attachments: [{ file_name: "note.txt", mime_type: "text/plain", data: new TextEncoder().encode("hä\n") }],
  });
  expect(made).toMatchObject({ task_id: made.run_id, state: "QUEUED" });
  const run = await ended(made.run_id);
  expect(run).toMatchObject({ state: "SUCCEEDED", title: "A greeting", prompt: "Say hello", source: "API" });
  expect(Date.parse(run.created_at)).toBeLessThanOrEqual(Date.parse(run.finished_at ?? ""));
  expect(run.metadata).toEqual({ team: "payments" });
  expect(run.agent_config.mcp_servers?.["a"]?.headers).toEqual({ k: "***" });
  expect(run.attachments).toMatchObject([{ file_name: "note.txt", size_bytes: 4 }]);
  expect(new TextDecoder().decode(await runs.attachment(made.run_id, "note.txt"))).toBe("hä\n");

  const said = await runs.conversation(made.run_id);
  expect(said.steps[0]?.messages.map((m) => m.role)).toEqual(["user", "assistant"]);
  expect(await conversations.retrieve(run.conversation_id)).toEqual(said);

  const events = await collect(runs.events(made.run_id));
  const states = events.flatMap((e) => (e.event === "state" ? [e.data.state] : []));
  expect(states).toEqual(["QUEUED", "CLAIMED", "INPROGRESS", "SUCCEEDED"]);
  const roles = events.flatMap((e) => (e.event === "message" ? [e.data.role] : []));
  expect(roles).toEqual(["user", "assistant"]);
  const rest = await collect(runs.events(made.run_id, { lastEventId: events.at(-2)?.id }));
  expect(rest.map((e) => e.event)).toEqual(["state"]);
  expect(await collect(runs.stream(made.run_id, { lastEventId: events.at(-1)?.id }))).toEqual([]);
});

test("lists of runs", async () => {
  const { runs } = client().agent;
  const name = once("list");
  const before = new Date(Date.now() - 60_000);
  const ids: string[] = [];
  for (const n of "01234") {
    ids.push((await runs.create({ prompt: "x", config: { name }, metadata: { n } })).run_id);
  }
  const query = { name, limit: 2, sort_by: "created_at", sort_order: "asc", created_after: before };
  expect((await collect(runs.list(query))).map((r) => r.run_id)).toEqual(ids);
  const page = await runs.list({ name, limit: 2 });
  expect(page.runs).toHaveLength(2);
  expect(page.hasNextPage()).toBe(true);
  const picked = await collect(
    runs.list({
      name,
      metadata: { n: "3" },
      source: "API",
      state: ["QUEUED", "CLAIMED", "INPROGRESS", "SUCCEEDED"],
    }),
  );
  expect(picked.map((r) => r.run_id)).toEqual([ids[3]]);
  expect(await collect(runs.list({ name, state: "BLOCKED" }))).toEqual([]);
  const e: unknown = await runs.list({ limit: 0 }).catch((reason: unknown) => reason);
  expect(e).toBeInstanceOf(BadRequestError);
  expect((e as BadRequestError).errors.map((f) => f.field)).toEqual(["limit"]);
});

test("a retried create starts one run", async () => {
  const { runs } = client().agent;
  const config = { name: once("idem") };
  const idempotencyKey = once("key");
  const made = new Set<string>();
  for (let i = 0; i < 3; i++)
    made.add((await runs.create({ prompt: "x", config }, { idempotencyKey })).run_id);
  expect(made.size).toBe(1);
  expect(await collect(runs.list({ name: config.name }))).toHaveLength(1);
  await expect(runs.create({ prompt: "another", config }, { idempotencyKey })).rejects.toThrow(ConflictError);
});

test("a run is cancelled, followed and continued", async () => {
  const { runs } = client().agent;
  const slow = await runs.create({ prompt: "work", config: { harness: { type: "slow" } } });
  await expect(runs.wait(slow.run_id, { maxWait: 2000 })).rejects.toThrow(RunWaitTimeoutError);
  const states: string[] = [];
  for await (const event of runs.events(slow.run_id)) {
    if (event.event === "state") states.push(event.data.state);
    if (event.event === "message" && event.data.role === "assistant") {
      expect(await runs.cancel(slow.run_id)).toBe(slow.run_id);
    }
  }
  expect(states).toEqual(["QUEUED", "CLAIMED", "INPROGRESS", "CANCELLED"]);
  await expect(runs.cancel(slow.run_id)).rejects.toThrow(BadRequestError);
  const again = await runs.retry(slow.run_id);
  expect(again.run_id).not.toBe(slow.run_id);
  expect(await runs.cancel(again.run_id)).toBe(again.run_id);

  const asking = await runs.create({ prompt: "work", config: { harness: { type: "ask" } } });
  expect((await ended(asking.run_id)).state).toBe("BLOCKED");
  const none = { question_id: "qst_x", choice: "approve" }; // this agent waits without a question
  await expect(runs.answer(asking.run_id, none)).rejects.toThrow(NotFoundError);
  const answer = await runs.submitFollowup(asking.run_id, { message: "go on" });
  expect(answer.outcome).toBe("handoff_execution");
  expect((await ended(asking.run_id)).state).toBe("BLOCKED");
  expect((await runs.conversation(asking.run_id)).steps).toHaveLength(2);

  const { conversation_id: id } = await runs.retrieve(asking.run_id);
  const { conversations } = client().agent;
  const onward = await conversations.submitFollowup(id, { message: "and on" });
  expect(onward).toMatchObject({ run_id: asking.run_id, outcome: "handoff_execution" });
  await ended(asking.run_id);
  expect((await runs.outputs(asking.run_id)).outputs).toEqual([]);
  await expect(runs.openPullRequest(asking.run_id, { title: "Mend" })).rejects.toThrow(ConflictError);
  const missing = "out_01j9zy0000e8q9v4m3k2n1p0rs";
  await expect(runs.approveOutput(asking.run_id, missing)).rejects.toThrow(NotFoundError);
  await expect(runs.rejectOutput(asking.run_id, missing)).rejects.toThrow(NotFoundError);
  await expect(runs.retryOutput(asking.run_id, missing)).rejects.toThrow(NotFoundError);
  const { events } = await runs.timeline(asking.run_id);
  const types = events.slice(0, 4).map((e) => e.event_type);
  expect(types).toEqual(["oz_run_created", "oz_run_claimed", "agent_started", "oz_run_blocked"]);
  expect(events.at(-1)?.execution_id).toBe(3);
  for (const file of [await runs.transcript(asking.run_id), await conversations.transcript(id)]) {
    expect(new TextDecoder().decode(file)).toContain("and on");
  }
});

test("what definitions have", async () => {
  const { agent } = client();
  expect((await agent.models()).models).toBeInstanceOf(Array);
  expect((await agent.environments({ sort_by: "name" })).environments).toBeInstanceOf(Array);
  expect((await agent.skills.defined({ repo: "no/where" })).agents).toEqual([]);
  expect((await agent.identities.list({ factory_uid: "fac_none" })).agents).toEqual([]);
  await expect(agent.identities.retrieve("agt_none")).rejects.toThrow(NotFoundError);
  expect((await agent.schedules.list()).schedules).toBeInstanceOf(Array);
  await expect(agent.schedules.retrieve("none")).rejects.toThrow(NotFoundError);
});

test("what runs left", async () => {
  const { agent } = client();
  const made = await agent.runs.create({ prompt: "x", config: { harness: { type: "leave" } } });
  const { artifacts } = await ended(made.run_id);
  expect(artifacts).toMatchObject([{ artifact_type: "FILE", data: { filename: "note.txt", size_bytes: 6 } }]);
  const uid = artifacts[0]?.data.artifact_uid ?? "";
  expect(await agent.artifacts.retrieve(uid)).toMatchObject({ run_id: made.run_id, artifact_type: "FILE" });
  expect(new TextDecoder().decode(await agent.artifacts.download(uid))).toBe("häha\n");
  await expect(agent.artifacts.retrieve("art_none")).rejects.toThrow(NotFoundError);
});

test("errors of the API", async () => {
  const { runs } = client().agent;
  const missing: unknown = await runs
    .retrieve("0199d3a4-0000-7000-8000-000000000001")
    .catch((e: unknown) => e);
  expect(missing).toBeInstanceOf(NotFoundError);
  expect(missing).toMatchObject({ status: 404, code: "resource_not_found", retryable: false });
  expect((missing as NotFoundError).requestId).toBeTruthy();
  const bad: unknown = await runs
    .create({ prompt: "x", config: { skill_spec: "nonsense" } })
    .catch((e: unknown) => e);
  expect((bad as BadRequestError).errors.map((f) => f.field)).toEqual(["config.skill_spec"]);
  await expect(client({ apiKey: "mw_unknown" }).agent.runs.list()).rejects.toThrow(AuthenticationError);
  const { secret } = await client().keys.create({ name: once("reader"), role: "viewer" });
  const reader = client().withOptions({ apiKey: secret });
  await expect(reader.agent.runs.create({ prompt: "x" })).rejects.toThrow(PermissionDeniedError);
  const refused: unknown = await client()
    .post("/agent/skills")
    .catch((e: unknown) => e);
  expect(refused).toBeInstanceOf(APIStatusError);
  expect(refused).toMatchObject({ status: 405 });
  await expect(runs.create({ prompt: "x".repeat(9 << 20) })).rejects.toThrow(PayloadTooLargeError);
});

test("raw responses and other endpoints", async () => {
  const { data, response } = await client().agent.skills.list().withResponse();
  expect(data.skills).toHaveLength(14);
  expect(response.requestId).toBe(response.headers.get("x-request-id"));
  const text = await client().get("/openapi.yaml").asResponse();
  expect(text.text()).toContain("openapi: 3.1");
  const made = await client().post<RunAgentResponse>("/agent/runs", { body: { prompt: "by hand" } });
  expect(made.state).toBe("QUEUED");
});

test("a factory", async () => {
  const { factories } = client();
  const demo = await factory("demo");
  expect((await collect(factories.list({ search: "DEM" }))).map((f) => f.name)).toEqual(["demo"]);
  const same = await factories.retrieve(demo.uid);
  expect(same).toMatchObject({
    source: { kind: "dir" },
    counts: { webhooks: 3, automations: 3 },
    sync: { state: "applied" },
  });
  expect((await collect(factories.syncs.list(demo.uid, { limit: 1 })))[0]?.outcome).toBe("applied");
  expect(["applied", "unchanged"]).toContain((await factories.sync(demo.uid)).outcome);
  expect((await factories.applied(demo.uid)).revisions).toHaveLength(1);
  await expect(factories.rollback(demo.uid, { dry_run: true })).rejects.toThrow(ConflictError);
  await expect(factories.resume(demo.uid)).rejects.toThrow(ConflictError);
  expect((await factories.plan(demo.uid)).would_apply).toBe(true);
  const wrong = await factories.plan(demo.uid, {
    files: [{ path: "webhooks/ci.yaml", content: "authMode: tokn\n" }],
  });
  expect(wrong.would_apply).toBe(false);
  expect(wrong.problems[0]?.path).toBe("webhooks/ci.yaml");
  const automations = await collect(factories.automations.list(demo.uid));
  expect(automations.map((a) => a.name).sort()).toEqual([
    "investigate-outage",
    "review-pull-request",
    "triage-failed-build",
  ]);
  const [automation] = automations;
  expect(await factories.automations.flow(demo.uid, automation?.uid ?? "")).toEqual({
    waiting: [],
    undecided: [],
    skipped: [],
    conversations: [],
  });
  const dropped = await factories.automations.dropWaiting(demo.uid, automation?.name ?? "");
  expect(dropped.run_ids).toEqual([]);
  const made = await factories.runs.create(demo.uid, { prompt: "Look into it", ticket_ref: "T-1" });
  expect(made).toMatchObject({ factory_uid: demo.uid, ticket_ref: "T-1" });
  expect((await ended(made.run_id)).factory_uid).toBe(demo.uid);
  const ci = await webhook(demo.uid, "ci");
  await expect(factories.webhooks.delete(demo.uid, ci.uid)).rejects.toThrow(UnprocessableEntityError);
});

test("a push notice", async () => {
  const { uid } = await factory("repo");
  const headers = {
    "X-Gitlab-Token": PUSH_SECRET,
    "X-Gitlab-Event": "Push Hook",
    "Content-Type": "application/json",
  };
  const body = new TextEncoder().encode('{"ref": "refs/heads/main"}');
  expect(await client().factories.notifyPush(uid, body, headers)).toBeUndefined();
  const wrong = client().factories.notifyPush(uid, body, { ...headers, "X-Gitlab-Token": "wrong" });
  await expect(wrong).rejects.toThrow(AuthenticationError);
});

test("webhooks and deliveries", async () => {
  const { factories, agent } = client();
  const demo = await factory("demo");
  const ci = await webhook(demo.uid, "ci");
  expect((await factories.webhooks.retrieve(demo.uid, ci.uid)).uid).toBe(ci.uid);
  const deliveryId = once("build");
  const token = server.secrets["CI_TOKEN"];
  const payload = { status: "failed", branch: "main", build: deliveryId };
  const sender = new WebhookSender(ci.ingress_url, { token });
  const receipt = await sender.send(payload, { deliveryId });
  expect(receipt.duplicate ?? false).toBe(false);
  expect(await sender.send(payload, { deliveryId })).toMatchObject({
    duplicate: true,
    delivery_id: receipt.delivery_id,
  });
  await expect(new WebhookSender(ci.ingress_url, { token: "wrong" }).send({})).rejects.toThrow(
    AuthenticationError,
  );
  await expect(sender.send(new TextEncoder().encode("{"))).rejects.toThrow(BadRequestError);
  await expect(sender.send("x".repeat(262_144))).rejects.toThrow(PayloadTooLargeError);

  const { deliveries } = factories.webhooks;
  const log = await collect(deliveries.list(demo.uid, ci.uid, { limit: 2 }));
  expect(new Set(log.map((d) => d.outcome))).toEqual(
    new Set(["accepted", "duplicate", "rejected_auth", "rejected_invalid_json", "rejected_too_large"]),
  );
  const accepted = await collect(deliveries.list(demo.uid, ci.uid, { outcome: "accepted" }));
  expect(accepted[0]?.delivery_id).toBe(receipt.delivery_id);
  const detail = await deliveries.retrieve(demo.uid, ci.uid, receipt.delivery_id);
  expect(detail.payload).toEqual(payload);
  const run = await ended(detail.runs[0]?.run_id ?? "");
  expect(run).toMatchObject({ source: "CUSTOM_WEBHOOK", metadata: { delivery_id: receipt.delivery_id } });
  expect((await agent.runs.attachment(run.run_id, "event-payload.json")).length).toBeGreaterThan(0);
  expect((await deliveries.replay(demo.uid, ci.uid, receipt.delivery_id)).replay_of).toBe(
    receipt.delivery_id,
  );
  const verdict = await factories.testFilter(demo.uid, {
    filter: { status: ["failed"] },
    delivery_id: receipt.delivery_id,
    webhook_ids: [ci.uid],
  });
  expect(verdict.would_trigger).toBe(true);

  const uptime = await webhook(demo.uid, "uptime");
  expect(uptime.ingress_url).toContain("{token}");
  const url = uptime.ingress_url.replace("{token}", server.secrets["UPTIME_TOKEN"] ?? "");
  expect((await new WebhookSender(url).send({ service: deliveryId, state: "up" })).delivery_id).toMatch(
    /^dlv_/,
  );
});

test("deliveries are followed", async () => {
  const demo = await factory("demo");
  const ci = await webhook(demo.uid, "ci");
  const { deliveries } = client().factories.webhooks;
  const build = once("follow");
  const token = server.secrets["CI_TOKEN"] ?? "";
  const seen: string[] = [];
  for await (const event of deliveries.events(demo.uid, ci.uid)) {
    seen.push(event.event);
    if (event.event === "listening") await new WebhookSender(ci.ingress_url, { token }).send({ build });
    if (event.event !== "delivery") continue;
    expect(event.data).toMatchObject({ delivery_id: event.id, outcome: "accepted" });
    const request = await deliveries.request(demo.uid, ci.uid, event.data.delivery_id);
    expect(new TextDecoder().decode(request)).toMatch(new RegExp(`^POST /webhooks/w/.*${build}`, "s"));
    expect(new TextDecoder().decode(request)).not.toContain(token);
    const earlier = deliveries.stream(demo.uid, ci.uid, { lastEventId: event.id });
    for await (const first of earlier) {
      expect(first.event).toBe("listening");
      break;
    }
    break;
  }
  expect(seen).toEqual(["listening", "delivery"]);
});

test("the webhooks of a managed factory", async () => {
  const { factories } = client();
  const ops = await factory("ops");
  const name = once("hook");
  const made = await factories.webhooks.create(ops.uid, {
    name,
    auth_mode: "signature",
    signature_scheme: "standard_webhooks",
  });
  const url = made.ingress_url;
  const signing = (secret: string | undefined) => new WebhookSender(url, { signingSecret: secret ?? "" });
  expect((await signing(made.secret).send({ a: 1 })).delivery_id).toMatch(/^dlv_/);

  const rotated = await factories.webhooks.rotate(ops.uid, made.uid);
  await expect(signing(made.secret).send({ a: 2 })).rejects.toThrow(AuthenticationError);
  expect((await signing(rotated.secret).send({ a: 2 })).delivery_id).toMatch(/^dlv_/);

  expect((await factories.webhooks.update(ops.uid, made.uid, { enabled: false })).enabled).toBe(false);
  await expect(signing(rotated.secret).send({ a: 3 })).rejects.toThrow(NotFoundError);
  expect(await factories.webhooks.delete(ops.uid, made.uid, { delete_secret: true })).toBeUndefined();
  const left = await collect(factories.webhooks.list(ops.uid));
  expect(left.map((w) => w.uid)).not.toContain(made.uid);
  const all = await collect(factories.webhooks.list(ops.uid, { include_deleted: true }));
  expect(all.find((w) => w.uid === made.uid)?.deleted_at).toBeTruthy();
});

test("the files of a managed factory", async () => {
  const { factories } = client();
  const ops = await factory("ops");
  const name = once("file");
  const file = `automations/${name}/automation.md`;
  const content =
    "---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    schedule:\n      cron: '0 9 * * 1'\n---\nLook around.\n";
  expect((await factories.files.put(ops.uid, file, { content })).outcome).toBe("applied");
  const automations = await collect(factories.automations.list(ops.uid));
  expect(automations.map((a) => a.name)).toContain(name);

  const { files, revisions } = factories;
  const held = await files.retrieve(ops.uid, file);
  expect(held.content).toBe(content);
  const base = { base_revision: held.revision };
  await files.put(ops.uid, file, { content: `${content}More.\n`, ...base });
  await expect(files.put(ops.uid, file, { content, ...base })).rejects.toThrow(ConflictError);
  await expect(files.delete(ops.uid, file, base)).rejects.toThrow(ConflictError);
  expect((await files.retrieve(ops.uid, file, { revision: held.revision })).content).toBe(content);
  expect((await files.delete(ops.uid, file)).outcome).toBe("applied");
  const paths = (await collect(files.list(ops.uid, { limit: 1 }))).map((f) => f.path);
  expect(paths).not.toContain(file);
  const older = await collect(files.list(ops.uid, { revision: held.revision }));
  expect(older.map((f) => f.path).sort()).toEqual([...paths, file].sort());

  const [newest] = await collect(revisions.list(ops.uid, { limit: 2 }));
  const changed = await revisions.retrieve(ops.uid, newest?.revision ?? "");
  expect(changed.files.map((f) => [f.path, f.action])).toEqual([[file, "delete"]]);
  expect((await revisions.restore(ops.uid, held.revision)).outcome).toBe("applied");
  expect((await files.retrieve(ops.uid, file)).content).toBe(content);

  const tar = await files.exportTar(ops.uid);
  expect(new TextDecoder().decode(tar)).toContain(file);
  expect((await files.importTar(ops.uid, tar)).outcome).toBe("unchanged");
  await expect(files.importTar(ops.uid, tar.slice(0, 520))).rejects.toThrow(BadRequestError);
  const rest = await Promise.all(paths.map((path) => files.retrieve(ops.uid, path)));
  const tree = rest.map(({ path, content }) => ({ path, content }));
  expect((await files.replace(ops.uid, { files: tree, allow_prune: true })).outcome).toBe("applied");
  await expect(files.retrieve(ops.uid, file)).rejects.toThrow(NotFoundError);
});

test("secrets", async () => {
  const { secrets } = client();
  const name = once("SECRET").replaceAll("-", "_").toUpperCase();
  expect(await secrets.set(name, { value: "a value" })).toMatchObject({ name, version: 1, pending: false });
  expect((await secrets.set(name, { value: "another" })).version).toBe(2);
  expect((await collect(secrets.list({ limit: 1 }))).map((s) => s.name)).toContain(name);
  expect(await secrets.delete(name)).toBeUndefined();
  expect((await secrets.set(name, { pending: true })).pending).toBe(true);
  await secrets.delete(name);
  await expect(secrets.delete("CI_TOKEN")).rejects.toThrow(ConflictError);
  await expect(secrets.set(name, { value: "" })).rejects.toThrow(BadRequestError);
});

test("keys", async () => {
  const { keys } = client();
  const made = await keys.create({
    name: once("key"),
    role: "runner",
    expires_at: new Date(Date.now() + 3_600_000),
  });
  expect(made.secret).toMatch(/^mw_/);
  expect((await collect(keys.list({ limit: 2 }))).map((k) => k.uid)).toContain(made.uid);
  const other = client({ apiKey: made.secret });
  await other.agent.skills.list();
  expect(await keys.revoke(made.uid)).toBeUndefined();
  await expect(other.agent.skills.list()).rejects.toThrow(AuthenticationError);
});

test("notifications", async () => {
  const { factories, secrets } = client();
  const ops = (await factory("ops")).uid;
  const file = "notifications/told-ts.yaml";
  await secrets.set("TOLD_SECRET", { value: `whsec_${"QUFB".repeat(8)}` });
  const content = "url: https://127.0.0.1:1\nsecretName: TOLD_SECRET\nevents: [run.failed]\n";
  await factories.files.put(ops, file, { content });
  const { notifications } = factories;
  expect((await collect(notifications.list(ops, { limit: 1 }))).map((n) => n.name)).toContain("told-ts");
  const event = await notifications.test(ops, "told-ts");
  expect((await notifications.event(ops, event.event_uid)).type).toBe("notification.test");
  await expect(notifications.replay(ops, event.event_uid)).rejects.toThrow(ConflictError);
  const told = await collect(notifications.events(ops, { notification: "told-ts", limit: 1 }));
  expect(told.map((e) => e.event_uid)).toEqual([event.event_uid]);
  expect((await notifications.replayDead(ops, "told-ts")).replayed).toBe(0);
  await factories.files.delete(ops, file);
});

test("an event is verified by the library of Standard Webhooks, and by this one", async () => {
  const { factories, secrets } = client();
  const ops = (await factory("ops")).uid;
  const [file, secret] = ["notifications/verified-ts.yaml", `whsec_${"QUJD".repeat(8)}`];
  const receiver = await new Hostile().start();
  receiver.play(answer(204));
  await secrets.set("VERIFIED_SECRET", { value: secret });
  const content = `url: ${receiver.origin}/in\nsecretName: VERIFIED_SECRET\nevents: [run.failed]\n`;
  await factories.files.put(ops, file, { content });
  const event = await factories.notifications.test(ops, "verified-ts");
  await expect.poll(() => receiver.requests.length, { timeout: 60_000 }).toBeGreaterThan(0);
  const { headers, body } = receiver.requests[0]!;
  expect(headers["webhook-id"]).toBe(event.event_uid);
  const theirs = new StandardWebhook(secret);
  expect(theirs.verify(body, headers)).toMatchObject({ type: "notification.test" });
  expect(await webhooks.verify(body, headers, secret)).toMatchObject({ type: "notification.test" });
  const changed = Buffer.concat([body, Buffer.from(" ")]);
  expect(() => theirs.verify(changed, headers)).toThrow();
  await expect(webhooks.verify(changed, headers, secret)).rejects.toThrow();
  await factories.files.delete(ops, file);
  await receiver.stop();
});

test("workers", async () => {
  const workers = await collect(client().workers.list({ limit: 1 }));
  expect(workers.every((w) => w.busy <= w.slots)).toBe(true);
});

test("audit log", async () => {
  const changes = await collect(client().audit.list({ action: "key", limit: 1 }));
  expect(changes.every((e) => e.action.startsWith("key."))).toBe(true);
});

test("definition files", async () => {
  const { factoryFiles } = client();
  const root = join(server.folder, "demo");
  const files = readdirSync(root, { recursive: true, encoding: "utf8" })
    .map((name) => join(root, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => ({ path: relative(root, path), content: readFileSync(path, "utf8") }));
  expect((await factoryFiles.validate({ files })).valid).toBe(true);
  const bad = await factoryFiles.validate({
    files: [{ path: "webhooks/x.yaml", content: "authMod: token\n" }],
  });
  expect(bad.valid).toBe(false);
  expect(bad.diagnostics[0]?.path).toBe("webhooks/x.yaml");
  const { current_version: version } = await factoryFiles.schemas.list();
  const { documents } = await factoryFiles.schemas.retrieve(version);
  expect(await factoryFiles.schemas.document(version, "webhook")).toEqual(documents["webhook"]);
});

test("every operation of the document was called", () => {
  // Comes last: an endpoint without a method, or a method without a test, is found here.
  expect(operations.map((op) => op.id).filter((id) => !called.has(id))).toEqual([]);
});
