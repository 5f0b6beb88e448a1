// The examples of the README, run against the real program as a program would that installed the package.

import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Millwright } from "../src/index.js";
import { KEY, Server } from "./server.js";

const run = promisify(execFile);
const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const FOLDER = join(PACKAGE, ".tmp", "readme"); // in the package, whose name then means its build
const README = readFileSync(join(PACKAGE, "README.md"), "utf8");
const examples = [...README.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = ""]) => code);

let server: Server;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  examples.forEach((code, i) => {
    writeFileSync(join(FOLDER, `example-${i + 1}.mjs`), code); // none has a type annotation, so that Node runs it
    writeFileSync(join(FOLDER, `typed-${i + 1}.mts`), code);
  });
  server = await Server.start({ demoAlone: true });
  const client = new Millwright({ apiKey: KEY, baseURL: server.baseURL });
  const [factory] = (await client.factories.list()).factories;
  const { webhooks } = await client.factories.webhooks.list(factory?.uid ?? "");
  env = {
    ...process.env,
    MILLWRIGHT_API_KEY: KEY,
    MILLWRIGHT_BASE_URL: server.baseURL,
    WEBHOOK_URL: webhooks.find((w) => w.name === "ci")?.ingress_url,
    WEBHOOK_TOKEN: server.secrets["CI_TOKEN"],
  };
});
afterAll(() => server?.stop());

test("there are examples", () => {
  expect(examples.length).toBeGreaterThanOrEqual(9);
});

test("the table has every method", () => {
  const table: Record<string, string[]> = {};
  for (const [, resources = "", groups = ""] of README.matchAll(/^\| (`client\..*?) +\| (.*?) +\|$/gm)) {
    let path = "";
    [...resources.matchAll(/`(.*?)`/g)].forEach(([, name = ""], i) => {
      path = name.startsWith(".") ? path.slice(0, path.lastIndexOf(".")) + name : name;
      table[path] = [...(groups.split(";")[i] ?? "").matchAll(/`(\w+)`/g)]
        .map(([, method = ""]) => method)
        .sort();
    });
  }
  const actual: Record<string, string[]> = {};
  const visit = (path: string, resource: object) => {
    const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(resource)).filter(
      (name) => name !== "constructor",
    );
    if (methods.length > 0) actual[path] = methods.sort();
    for (const [name, below] of Object.entries(resource)) {
      if (below instanceof Object) visit(`${path}.${name}`, below);
    }
  };
  visit("client", new Millwright({ apiKey: KEY, baseURL: "http://127.0.0.1:1/api/v1" }));
  delete actual["client"]; // calls of any path, which a section of their own describes
  expect(table).toEqual(actual);
});

test.each(examples.map((code, i) => [i + 1, code]))("example %d", async (i) => {
  await run(process.execPath, ["--throw-deprecation", join(FOLDER, `example-${i}.mjs`)], { env });
});

test("the examples are typed", async () => {
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: "es2022",
    module: "nodenext",
    types: ["node"],
  };
  writeFileSync(join(FOLDER, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.mts"] }));
  const tsc = join(PACKAGE, "node_modules/typescript/bin/tsc");
  await run(process.execPath, [tsc, "-p", FOLDER]).catch((e: { stdout: string }) =>
    expect(e.stdout).toBe(""),
  );
});
