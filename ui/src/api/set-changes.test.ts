import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { GATHER, setChanges } from "./set-changes";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => (vi.useRealTimers(), void vi.unstubAllGlobals()));

/** What the page is told of these events, while the watch stays open. */
async function told(...types: string[]): Promise<string[]> {
  const found: string[] = [];
  const control = new AbortController();
  const text = types.map((type) => `data: ${JSON.stringify({ result: { type } })}\n\n`).join("");
  const body = new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode(text)) });
  vi.stubGlobal("fetch", vi.fn(async () => new Response(body)));
  const open = setChanges({ name: "teams", namespace: "argocd" }, { begins: () => found.push("begins"), changed: () => found.push("changed"), gone: () => found.push("gone") });
  void open(control.signal, () => found.push("open")).catch(() => undefined);
  await vi.advanceTimersByTimeAsync(GATHER * 20);
  control.abort();
  return found;
}

it("looks at changes that come together once", async () => expect(await told("MODIFIED", "MODIFIED")).toEqual(["open", "begins", "changed"]));

it("never asks for a set again that was deleted, though it changed just before", async () => {
  expect(await told("MODIFIED", "DELETED")).toEqual(["open", "begins", "gone"]);
  expect(await told("DELETED", "DELETED", "ADDED")).toEqual(["open", "begins", "gone"]);
});
