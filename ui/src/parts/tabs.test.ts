import { expect, it } from "vitest";
import { tabAfter } from "./tabs";

it.each([
  ["ArrowRight", 2, 0],
  ["ArrowLeft", 0, 2],
  ["ArrowLeft", 2, 1],
  ["Home", 1, 0],
  ["End", 0, 2],
  ["Tab", 1, undefined],
])("%s at %d of 3 leads to %s", (key, at, want) => expect(tabAfter(key, at, 3)).toBe(want));
