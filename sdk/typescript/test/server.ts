// The real program, built and started for the tests, with a state and a port of its own.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createWriteStream, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ListFactoriesResponse } from "../src/index.js";

export const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));
export const KEY = "mw_0123456789abcdefghijklmnopqrstuvwxyz0123";
export const PUSH_SECRET = "a-secret-of-the-git-host";

const settings = (folder: string, port: number) => `
listen: 127.0.0.1:${port}
state: ${folder}/state.db
factories:
  - name: demo
    source: { dir: ${folder}/demo }
  - name: ops
    source: { managed: {} }
  - name: repo
    source:
      git: { url: "file://${folder}/repo", branch: main, pushSecret: GIT_PUSH, pushScheme: gitlab }
harness: echo
outbound: { allow: [127.0.0.1] }
harnesses:
  slow: { command: [sh, -c, "echo started; sleep 600"], sameUser: true }
  leave: { command: [sh, -c, "mkdir -p .millwright/artifacts && echo häha > .millwright/artifacts/note.txt"], sameUser: true }
  ask: { command: [sh, -c, "echo what now; exit 10"], sameUser: true }
`;

/** A running server with three factories, demo (a directory), ops (managed) and repo (git), or with demo alone. */
export class Server {
  readonly folder = mkdtempSync(join(tmpdir(), "millwright-sdk-"));
  readonly origin: string;
  readonly secrets: Record<string, string>;
  readonly #process: ChildProcess;

  static async start({ demoAlone = false } = {}): Promise<Server> {
    const server = new Server(await freePort(), demoAlone);
    await server.#untilReady();
    return server;
  }

  private constructor(port: number, demoAlone: boolean) {
    this.origin = `http://127.0.0.1:${port}`;
    const binary = process.env["MILLWRIGHT_BIN"] ?? this.#build();
    const others = Object.entries(process.env).filter(([name]) => !name.startsWith("MILLWRIGHT_"));
    const env = { ...Object.fromEntries(others), MILLWRIGHT_BOOTSTRAP_KEY: KEY };
    const state = join(this.folder, "state.db");
    const demo = join(this.folder, "demo");
    const options = ["--demo", "--factory", "demo", "--state", state, "--public-url", this.origin];
    const said = execFileSync(binary, ["init", ...options, demo], { env, encoding: "utf8" });
    this.secrets = Object.fromEntries(
      [...said.matchAll(/^ {2}([A-Z_]+) +([0-9a-f]{48})$/gm)].map(([, name, value]) => [name, value]),
    ) as Record<string, string>;
    this.#makeRepository(join(this.folder, "repo"));
    const config = join(this.folder, "millwright.yaml");
    writeFileSync(config, settings(this.folder, port));
    const alone = ["--dir", demo, "--factory", "demo", "--state", state, "--listen", `127.0.0.1:${port}`];
    const serve = ["serve", ...(demoAlone ? alone : ["--config", config])];
    this.#process = spawn(binary, serve, { env, cwd: this.folder });
    const log = createWriteStream(join(this.folder, "log"));
    this.#process.stdout?.pipe(log, { end: false });
    this.#process.stderr?.pipe(log, { end: false });
  }

  get baseURL(): string {
    return `${this.origin}/api/v1`;
  }

  #build(): string {
    const target = join(this.folder, "millwright");
    execFileSync("go", ["build", "-o", target, "./cmd/millwright"], { cwd: REPOSITORY });
    return target;
  }

  #makeRepository(folder: string): void {
    mkdirSync(join(folder, "webhooks"), { recursive: true });
    writeFileSync(join(folder, "webhooks", "ci.yaml"), "authMode: token\nsecretName: CI_TOKEN\n");
    const author = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
    for (const step of [
      ["init", "-q", "-b", "main"],
      ["add", "."],
      [...author, "commit", "-q", "-m", "Add a webhook"],
    ]) {
      execFileSync("git", step, { cwd: folder });
    }
  }

  async #untilReady(): Promise<void> {
    const headers = { authorization: `Bearer ${KEY}` };
    for (const end = Date.now() + 60_000; ;) {
      const ready = await fetch(`${this.baseURL}/factory?search=demo`, { headers })
        .then((response) => response.json())
        .then(
          ({ factories }: ListFactoriesResponse) => factories[0]?.sync.state === "applied",
          () => false,
        );
      if (ready) return;
      if (this.#process.exitCode !== null || Date.now() > end) {
        throw new Error(`the server did not start:\n${readFileSync(join(this.folder, "log"), "utf8")}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Ends the server that this started, and no other. */
  async stop(): Promise<void> {
    if (this.#process.exitCode === null) {
      const ended = new Promise((resolve) => this.#process.once("exit", resolve));
      const timer = setTimeout(() => this.#process.kill("SIGKILL"), 60_000);
      this.#process.kill("SIGTERM");
      await ended;
      clearTimeout(timer);
    }
    if (this.#process.exitCode === 66) {
      const log = readFileSync(join(this.folder, "log"), "utf8"); // with what the race detector found
      throw new Error(`the server has a data race:\n${log}`);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A port that nobody listens on, below those that systems give to connections. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 22_000);
    const server = createServer();
    const free = await new Promise((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
