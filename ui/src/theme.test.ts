import { afterEach, expect, it, vi } from "vitest";
import { keep, kept } from "./kept";
import { applyTheme, themeOf } from "./theme";

afterEach(() => void vi.unstubAllGlobals());

function browser(broken = false) {
  const items = new Map<string, string>();
  const dataset: Record<string, string> = {};
  const refuse = () => {
    throw new Error("storage is switched off");
  };
  const storage = { getItem: (key: string) => items.get(key) ?? null, setItem: (key: string, text: string) => items.set(key, text), removeItem: (key: string) => items.delete(key) };
  vi.stubGlobal("localStorage", broken ? { getItem: refuse, setItem: refuse, removeItem: refuse } : storage);
  vi.stubGlobal("document", { documentElement: { dataset } });
  return { items, dataset };
}

it("the chosen theme is told to the stylesheet, and taken back", () => {
  const { items, dataset } = browser();
  keep("theme", "dark");
  applyTheme();
  expect([dataset["theme"], items.get("tiphys:theme")]).toEqual(["dark", "dark"]);
  keep("theme", "");
  applyTheme();
  expect([dataset["theme"], items.size]).toEqual([undefined, 0]);
  expect(["light", "sepia", "toString", ""].map(themeOf)).toEqual(["light", "auto", "auto", "auto"]);
});

it("without storage a choice lasts until the page is loaded again", () => {
  const { dataset } = browser(true);
  keep("theme", "light");
  applyTheme();
  expect([kept("theme"), dataset["theme"]]).toEqual(["light", "light"]);
  keep("theme", "");
});
