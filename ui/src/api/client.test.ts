import { afterEach, expect, it, vi } from "vitest";
import { api, setSignedOutHandler } from "./client";

const reply = (status: number, body: string) => vi.stubGlobal("fetch", vi.fn(async () => new Response(body, { status })));
const signal = new AbortController().signal;

afterEach(() => void vi.unstubAllGlobals());

it("reads a stream and ends with the error it carries", async () => {
  reply(200, 'data: {"result":{"nodes":[]}}\n\n:\n\ndata: {"error":{"message":"gone","http_code":503}}\n\n');
  const seen: unknown[] = [];
  const reading = api.watchTree({ name: "a b", namespace: "n" }, signal, { open: () => seen.push("open"), message: (m) => seen.push(m) });
  await expect(reading).rejects.toMatchObject({ status: 503, message: "gone" });
  expect(seen).toEqual(["open", { nodes: [] }]);
  expect(vi.mocked(fetch).mock.calls[0]?.[0]).toBe("/api/v1/stream/applications/a%20b/resource-tree?appNamespace=n");
});

it("says why a call failed", async () => {
  reply(400, '{"error":"e","message":"the revision is not there","code":3}');
  await expect(api.refresh({ name: "a", namespace: "" })).rejects.toThrow("the revision is not there");
  reply(502, "<html>");
  await expect(api.list()).rejects.toMatchObject({ status: 502, message: "<html>" });
  vi.stubGlobal("fetch", vi.fn(() => Promise.reject(new TypeError("failed"))));
  await expect(api.list()).rejects.toMatchObject({ status: 0 });
});

it("tells of a session that ended, but not of a refused login", async () => {
  const ended = vi.fn();
  setSignedOutHandler(ended);
  reply(401, '{"message":"no session information"}');
  await expect(api.login("admin", "x")).rejects.toThrow("no session information");
  expect(ended).not.toHaveBeenCalled();
  await expect(api.list()).rejects.toThrow();
  expect(ended).toHaveBeenCalledOnce();
});
