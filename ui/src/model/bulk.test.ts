import { expect, it } from "vitest";
import { forEach, outcome } from "./bulk";

it("does all of them, a few at a time, and says which failed", async () => {
  let running = 0;
  let most = 0;
  const told: number[] = [];
  const act = async (n: number) => {
    most = Math.max(most, ++running);
    await Promise.resolve();
    running--;
    if (n % 5 === 0) throw new Error(`no ${n}`);
  };
  const all = Array.from({ length: 12 }, (_, n) => n);
  const result = await forEach(all, act, new AbortController().signal, ({ done }) => told.push(done));
  expect(result.done).toBe(12);
  expect(result.failed.map(({ item, why }) => [item, why]).sort()).toEqual([[0, "no 0"], [10, "no 10"], [5, "no 5"]]);
  expect(most).toBe(4);
  expect(told).toEqual(all.map((n) => n + 1));
});

it("stops between two calls", async () => {
  const stop = new AbortController();
  const seen: number[] = [];
  const { done } = await forEach([1, 2, 3, 4, 5, 6, 7, 8, 9], async (n) => (seen.push(n), n === 4 && stop.abort()), stop.signal, () => undefined);
  expect(seen).toEqual([1, 2, 3, 4]);
  expect(done).toBe(4);
});

it("says what became of them", () => {
  const failed = [{ item: 1, why: "no" }];
  expect(outcome({ done: 3, failed: [] }, 3, false)).toBe("3 of 3 accepted");
  expect(outcome({ done: 3, failed }, 9, true)).toBe("2 of 9 accepted, 1 refused; stopped, 6 were left alone");
  // It was stopped when the last one was on its way.
  expect(outcome({ done: 9, failed }, 9, true)).toBe("8 of 9 accepted, 1 refused");
});
