import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// Where the API is while the page is developed: `TIPHYS_API=http://127.0.0.1:8080 npm run dev`.
const api = process.env["TIPHYS_API"] ?? "http://127.0.0.1:8080";
const proxy = { "/api": api, "/extensions.js": api, "/extensions/": api, "/terminal": { target: api, ws: true } };

export default defineConfig({
  plugins: [react()],
  server: { proxy },
  preview: { proxy },
  experimental: {
    // The server writes its root path into the page, but into no other file: what is loaded later is found beside what loads it.
    renderBuiltUrl: (_file, { hostType }) => (hostType === "js" ? { relative: true } : undefined),
  },
  build: {
    target: "es2022",
    // The server's content policy allows nothing inline, so even small files stay files.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  test: { include: ["src/**/*.test.ts", "e2e/**/*.test.mjs"] },
});
