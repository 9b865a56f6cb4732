import { afterEach, expect, it, vi } from "vitest";
import { keep, kept } from "./kept";

afterEach(() => void vi.unstubAllGlobals());

it("what a full storage does not take lasts until it takes something", () => {
  const stored = new Map([["tiphys:view", "tiles"]]);
  let isFull = true;
  const setItem = (key: string, text: string) => {
    if (isFull) throw new Error("QuotaExceededError");
    stored.set(key, text);
  };
  vi.stubGlobal("localStorage", { getItem: (key: string) => stored.get(key) ?? null, setItem, removeItem: (key: string) => stored.delete(key) });
  keep("view", "list");
  expect([kept("view"), stored.get("tiphys:view")]).toEqual(["list", "tiles"]);
  isFull = false;
  keep("view", "summary");
  // Another tab changes it.
  stored.set("tiphys:view", "tiles");
  expect(kept("view")).toBe("tiles");
});
