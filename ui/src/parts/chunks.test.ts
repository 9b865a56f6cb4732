import { expect, it } from "vitest";
import { CHUNK, chunkOf } from "./chunks";

it("draws the chunk with the focus wherever its item has gone", () => {
  const items = Array.from({ length: 2 * CHUNK + 1 }, (_, n) => `item-${n}`);
  const of = (wanted: string | undefined) => chunkOf(items, (item) => item, wanted);
  expect([of("item-0"), of(`item-${CHUNK - 1}`), of(`item-${CHUNK}`), of(`item-${2 * CHUNK}`)]).toEqual([0, 0, 1, 2]);
  expect([of("gone"), of(undefined)]).toEqual([-1, -1]);
});
