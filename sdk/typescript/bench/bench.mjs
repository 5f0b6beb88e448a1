// Prints the size of the package, the time of its import, and what a call costs beside plain fetch.

import { execFileSync, fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const CALLS = 300;
const ROUNDS = 7;
const RUN = {
  run_id: "0199d3a4-0000-7000-8000-000000000001",
  task_id: "0199d3a4-0000-7000-8000-000000000001",
  root_run_id: "0199d3a4-0000-7000-8000-000000000001",
  title: "A run",
  prompt: "do",
  state: "QUEUED",
  source: "API",
  created_at: "2026-01-02T03:04:05Z",
  updated_at: "2026-01-02T03:04:05Z",
  started_at: null,
  finished_at: null,
  creator: { type: "service_account", uid: "key_1", display_name: "ci" },
  session_id: "s",
  session_link: "l",
  conversation_id: "c",
  agent_config: { name: "n" },
  metadata: {},
  is_run_type_cancellable: true,
  advertised_skills: [],
  attachments: [],
};

if (process.send) {
  const body = JSON.stringify(RUN);
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    request.resume();
    response.writeHead(200, headers).end(body);
  });
  server.listen(0, "127.0.0.1", () => process.send(server.address().port));
} else {
  const manifest = JSON.parse(readFileSync(`${HERE}/package.json`, "utf8"));
  console.log(`${manifest.name} ${manifest.version}, Node ${process.versions.node}`);
  sizes();
  imports();
  await calls();
}

function sizes() {
  const pack = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const [made] = JSON.parse(execFileSync("npm", pack, { cwd: HERE, encoding: "utf8", stdio: "pipe" }));
  const code = readFileSync(`${HERE}/dist/index.js`);
  console.log("size of the package");
  console.log(
    `  packed   ${kib(made.size)}, ${kib(made.unpackedSize)} unpacked, with types and for both kinds of module`,
  );
  console.log(`  ESM only ${kib(code.length)}, ${kib(gzipSync(code).length)} gzipped, not minified`);
}

function kib(bytes) {
  return `${(bytes / 1024).toFixed(1)} KiB`;
}

function imports() {
  const esm = (code) => ["--input-type=module", "-e", code];
  const programs = {
    import: [esm(""), esm('import "@millwright/sdk"')],
    require: [
      ["-e", ""],
      ["-e", 'require("@millwright/sdk")'],
    ],
    "Node's own fetch": [
      ["-e", ""],
      ["-e", "fetch"],
    ],
  };
  const took = (args) => {
    const start = performance.now();
    execFileSync(process.execPath, args, { cwd: HERE });
    return performance.now() - start;
  };
  console.log("time of an import, beyond that of an empty program");
  for (const [name, [empty, full]] of Object.entries(programs)) {
    const times = Array.from({ length: 21 }, () => [took(empty), took(full)]);
    const [without, with_] = [0, 1].map((i) => median(times.map((pair) => pair[i])));
    console.log(`  ${name.padEnd(16)} ${(with_ - without).toFixed(1)} ms`);
  }
}

async function calls() {
  const server = fork(fileURLToPath(import.meta.url));
  const port = await new Promise((resolve) => server.once("message", resolve));
  const baseURL = `http://127.0.0.1:${port}/api/v1`;
  const { Millwright } = await import("@millwright/sdk");
  const client = new Millwright({ apiKey: "mw_x", baseURL });
  const headers = { authorization: "Bearer mw_x" };
  const plain = () => fetch(`${baseURL}/agent/runs/r`, { headers }).then((r) => r.json());
  const ours = () => client.agent.runs.retrieve("r");
  const times = { plain: [], ours: [] };
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, call] of [
      ["plain", plain],
      ["ours", ours],
    ]) {
      const start = performance.now();
      for (let i = 0; i < CALLS; i++) await call();
      if (round > 0) times[name].push(((performance.now() - start) / CALLS) * 1000); // the first one warms up
    }
  }
  server.kill();
  const [a, b] = [median(times.plain), median(times.ours)];
  console.log(`one call, the median of ${ROUNDS} times ${CALLS}`);
  console.log(
    `  fetch and json() ${a.toFixed(0)} us   this client ${b.toFixed(0)} us   ${(b / a).toFixed(2)} x`,
  );
}

function median(values) {
  return values.sort((a, b) => a - b)[values.length >> 1];
}
