import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { alias: { "@millwright/sdk": fileURLToPath(new URL("src/index.ts", import.meta.url)) } },
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/fast.ts"],
    testTimeout: 120_000,
    hookTimeout: 300_000,
  },
});
