// Time that passes faster: what the SDK waits between attempts takes a five-hundredth of it in tests.

import { vi } from "vitest";

declare global {
  /** What was waited for, in milliseconds of the SDK. */
  var waits: number[];
}

globalThis.waits = [];

vi.mock("../src/core/retry.js", async (original) => {
  const real = await original<typeof import("../src/core/retry.js")>();
  return {
    ...real,
    sleep: async (wait: number, signal?: AbortSignal) => {
      globalThis.waits.push(wait);
      await real.sleep(wait / 500, signal);
    },
  };
});
