import { afterEach, expect, it, vi } from "vitest";
import type { Applications } from "../model/applications";
import { follow } from "./applications";

afterEach(() => void vi.unstubAllGlobals());

/** A server whose stream opens when told to, and whose lists are these, one after the other. */
function serve(lists: (() => unknown)[]) {
  let begin = () => {};
  const stream = new Promise<Response>((done) => (begin = () => done(new Response(""))));
  const answer = async (url: string) => (url.includes("/stream/") ? stream : new Response(JSON.stringify(await lists.shift()?.())));
  vi.stubGlobal("fetch", vi.fn(answer));
  return () => begin();
}

function followed() {
  let apps: Applications | undefined;
  const stop = new AbortController();
  const ended = follow(stop.signal, () => {}, (change) => void (apps = change(apps ?? new Map())));
  return { apps: () => apps, ended };
}

it("lists before the stream opens, as it does not without Applications", async () => {
  const open = serve([() => ({ items: null }), () => ({ items: [{ metadata: { name: "new", namespace: "n" }, spec: {} }] })]);
  const { apps, ended } = followed();
  await vi.waitFor(() => expect(apps()?.size).toBe(0));
  open();
  await ended;
  expect([...(apps()?.keys() ?? [])]).toEqual(["n/new"]);
});

it("leaves out an early list that is late", async () => {
  let late = (_: unknown) => {};
  const early = new Promise((done) => (late = done));
  const open = serve([() => early, () => ({ items: [] })]);
  const { apps, ended } = followed();
  open();
  await vi.waitFor(() => expect(apps()?.size).toBe(0));
  late({ items: [{ metadata: { name: "gone", namespace: "n" }, spec: {} }] });
  await ended;
  expect(apps()?.size).toBe(0);
});
