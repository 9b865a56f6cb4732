import { expect, it } from "vitest";
import { itemAfter } from "./menu";

it("keys move in a menu, around its ends, and by first letters", () => {
  const titles = ["Details", "Delete…", "Logs"];
  const walk = (keys: string[], from = 0) => keys.reduce<number | undefined>((at, key) => itemAfter(key, at ?? -1, titles), from);
  expect(walk(["ArrowDown", "ArrowDown", "ArrowDown"])).toBe(0);
  expect(walk(["ArrowUp"])).toBe(2);
  expect(walk(["ArrowUp"], -1)).toBe(2);
  expect(walk(["End"])).toBe(2);
  expect(walk(["Home"], 2)).toBe(0);
  expect(walk(["d"])).toBe(1);
  expect(walk(["d", "D"])).toBe(0);
  expect(walk(["l"])).toBe(2);
});

it("leaves other keys alone, and an empty menu too", () => {
  for (const key of ["Enter", " ", "F5", "x"]) expect(itemAfter(key, 0, ["Details"])).toBe(undefined);
  expect(itemAfter("ArrowDown", -1, [])).toBe(undefined);
});
