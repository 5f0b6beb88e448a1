// The package as programs that install it see it: ESM and CommonJS, with types, and where there is no Node.

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createContext, Script } from "node:vm";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as sdk from "../src/index.js";
import { answer, Hostile, KEY, RUN } from "./hostile.js";

const run = promisify(execFile);
const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "millwright-consumers-"));
const hostile = new Hostile();
let packed: string[];

beforeAll(async () => {
  await hostile.start();
  const pack = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
  const { stdout } = await run("npm", pack, { cwd: PACKAGE });
  const [made] = JSON.parse(stdout) as { filename: string; files: { path: string }[] }[];
  packed = made?.files.map((f) => f.path).sort() ?? [];
  const installed = join(folder, "node_modules/@millwright/sdk");
  mkdirSync(installed, { recursive: true });
  await run("tar", ["-xzf", join(folder, made?.filename ?? ""), "-C", installed, "--strip-components=1"]);
});
afterAll(async () => {
  await hostile.stop();
  rmSync(folder, { recursive: true, force: true });
});

const USE = `
const client = new Millwright({ apiKey: "${KEY}", baseURL: process.argv[2] });
client.agent.runs.retrieve("r").then((run) => {
  if (run.title !== "A run" || !(client instanceof named.Millwright)) throw new Error("not what was expected");
  console.log(Object.keys(named).sort().join(" "));
});
`;

test("nothing but the build is in it, and it needs nothing", () => {
  const built = ["cjs", "d.cts", "d.ts", "js"].map((kind) => `dist/index.${kind}`);
  expect(packed).toEqual(["LICENSE", "README.md", ...built, "package.json"]);
  const manifest = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")) as object;
  expect(manifest).not.toHaveProperty("dependencies");
  expect(manifest).not.toHaveProperty("peerDependencies");
});

test.each([
  ["esm.mjs", 'import Millwright, * as named from "@millwright/sdk";'],
  [
    "cjs.cjs",
    'const { default: Millwright, ...named } = require("@millwright/sdk"); named.default = Millwright;',
  ],
])("%s", async (name, head) => {
  hostile.play(answer(200, RUN));
  writeFileSync(join(folder, name), head + USE);
  const { stdout } = await run(process.execPath, [join(folder, name), hostile.baseURL]);
  expect(stdout.split(" ")).toEqual(
    expect.arrayContaining(["APIStatusError", "Millwright", "WebhookSender"]),
  );
});

test("types, for both kinds of module", async () => {
  const program = `
import { Millwright, type RunAgentResponse, type RunState } from "@millwright/sdk";
const client = new Millwright({ apiKey: "k", baseURL: "https://x/api/v1" });
export const made: Promise<RunAgentResponse> = client.agent.runs.create({ prompt: "do", metadata: { a: "b" } });
export const state = async (id: string): Promise<RunState> => (await client.agent.runs.retrieve(id)).state;
// @ts-expect-error a prompt is text
export const wrong = client.agent.runs.create({ prompt: 7 });
`;
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    target: "es2022",
    lib: ["es2022", "dom"],
    module: "nodenext",
    types: [],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["program.*"] }));
  for (const kind of ["mts", "cts"]) writeFileSync(join(folder, `program.${kind}`), program);
  const tsc = join(PACKAGE, "node_modules/typescript/bin/tsc");
  await run(process.execPath, [tsc, "-p", folder]).catch((e: { stdout: string }) =>
    expect(e.stdout).toBe(""),
  );
});

test("where there is nothing but what the web has", async () => {
  const web = { AbortController, atob, btoa, clearTimeout, crypto, Headers, setTimeout } as const;
  const also = { TextDecoder, TextEncoder, URL, URLSearchParams };
  const sent: RequestInit[] = [];
  const fetch = (_: string, init: RequestInit) => {
    sent.push(init);
    return Promise.resolve(new Response(JSON.stringify(RUN)));
  };
  const module = { exports: {} as typeof sdk };
  const context = createContext({ ...web, ...also, fetch, module, exports: module.exports });
  new Script(readFileSync(join(PACKAGE, "dist/index.cjs"), "utf8")).runInContext(context);
  const { Millwright, WebhookSender } = module.exports;
  const client = new Millwright({ apiKey: KEY, baseURL: "https://x/api/v1" });
  expect((await client.agent.runs.retrieve("r")).title).toBe("A run");
  const receipt = new WebhookSender("https://x/webhooks/w/wh_1", {
    signingSecret: `whsec_${btoa("k".repeat(32))}`,
  });
  await expect(receipt.send({ a: 1 })).rejects.toThrow("no delivery_id");
  expect(sent[1]?.headers).toHaveProperty("webhook-signature");
  expect(() => new Millwright({ apiKey: KEY })).toThrow("MILLWRIGHT_BASE_URL");
});
