import { afterEach, expect, it, vi } from "vitest";
import type { Applications } from "../model/applications";
import { follower } from "./applications";

afterEach(() => void vi.unstubAllGlobals());

const app = (name: string) => ({ metadata: { name, namespace: "n" }, spec: {} });
const event = (type: string, application: object, resume = "", changed: string[] = []) => ({ result: { type, application, delta: { resume, changed } } });

/** A server whose watches have these events, one watch after the other, and what was asked of it. */
function serve(...watches: (object[] | Response)[]) {
  const asked: URLSearchParams[] = [];
  const answer = async (url: string) => {
    asked.push(new URL(url, "http://page").searchParams);
    const next = watches.shift() ?? [];
    return next instanceof Response ? next : new Response(next.map((one) => `data: ${JSON.stringify(one)}\n\n`).join(""));
  };
  vi.stubGlobal("fetch", vi.fn(answer));
  return asked;
}

function followed(signal = new AbortController().signal) {
  const told: string[][] = [];
  const open = follower((apps: Applications) => void told.push([...apps.keys()].sort()));
  return { told, watch: () => open(signal, () => {}) };
}

it("asks for what a row shows, and goes on with the token: deletions in between are told", async () => {
  const asked = serve([event("ADDED", app("a")), event("ADDED", app("b")), event("BOOKMARK", {}, "t1")], [event("DELETED", app("a"), "t2")], []);
  const { told, watch } = followed();
  await watch();
  await watch();
  await watch();
  expect(told).toEqual([["n/a", "n/b"], ["n/b"]]);
  expect(asked.map((query) => [query.get("delta"), query.get("resume")])).toEqual([["true", null], ["true", "t1"], ["true", "t2"]]);
  const fields = asked[0]?.get("fields")?.split(",") ?? [];
  expect(fields).toContain("result.delta");
  expect(new Set(asked.map((query) => query.get("fields"))).size).toBe(1);
  expect(fields).not.toContain("result.application.metadata.annotations");
});

it("asks for annotations where somebody filters by them", async () => {
  const asked = serve([event("BOOKMARK", {}, "t1")]);
  await follower(() => {}, true)(new AbortController().signal, () => {});
  expect(asked[0]?.get("fields")?.split(",")).toContain("result.application.metadata.annotations");
});

it("tells of a first state only when it is whole", async () => {
  const asked = serve([event("ADDED", app("a"))], [event("ADDED", app("b")), event("BOOKMARK", {}, "t1")]);
  const { told, watch } = followed();
  await watch();
  expect(told).toEqual([]);
  await watch();
  // What the watch that was cut had told is not kept: it may be gone.
  expect(told).toEqual([["n/b"]]);
  expect(asked[1]?.get("resume")).toBeNull();
});

it("forgets when it is told to begin again, and what it knew stays on the page until then", async () => {
  serve([event("ADDED", app("a")), event("BOOKMARK", {}, "t1")], [event("EXPIRED", {})], [event("ADDED", app("b")), event("BOOKMARK", {}, "t2")]);
  const { told, watch } = followed();
  await watch();
  await watch();
  expect(told).toEqual([["n/a"]]);
  await watch();
  expect(told).toEqual([["n/a"], ["n/b"]]);
});

it("begins anew after a token that the server cannot read", async () => {
  const refused = new Response(JSON.stringify({ message: "no token" }), { status: 400 });
  const asked = serve([event("BOOKMARK", {}, "t1")], refused, [event("BOOKMARK", {}, "t2")]);
  const { watch } = followed();
  await watch();
  await expect(watch()).rejects.toThrow("no token");
  await watch();
  expect(asked.map((query) => query.get("resume"))).toEqual([null, "t1", null]);
});

it("begins anew after a change of what it does not know", async () => {
  const asked = serve([event("BOOKMARK", {}, "t1")], [event("MODIFIED", app("a"), "t2", ["spec.project"])], []);
  const { watch } = followed();
  await watch();
  await expect(watch()).rejects.toThrow("of which it had not told");
  await watch();
  expect(asked[2]?.get("resume")).toBeNull();
});
