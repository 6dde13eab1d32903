import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    environment: "happy-dom",
    include: ["test/**/*.test.{ts,tsx}"],
    // Without a process and a document for each file, which take four times as long as the tests.
    isolate: false,
    maxWorkers: 1,
  },
});
