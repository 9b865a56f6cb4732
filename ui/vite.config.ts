import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// Where the API is while the page is developed: `TIPHYS_API=http://127.0.0.1:8080 npm run dev`.
const proxy = { "/api": process.env["TIPHYS_API"] ?? "http://127.0.0.1:8080" };

export default defineConfig({
  plugins: [react()],
  server: { proxy },
  preview: { proxy },
  build: {
    target: "es2022",
    // The server's content policy allows nothing inline, so even small files stay files.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  test: { include: ["src/**/*.test.ts"] },
});
