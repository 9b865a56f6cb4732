import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ApiError } from "./client";
import { keepOpen } from "./live";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("reconnects with growing pauses and starts over once it was live", async () => {
  const stop = new AbortController();
  const told: string[] = [];
  const at: number[] = [];
  const start = Date.now();
  const done = keepOpen(
    async (_, opened) => {
      at.push(Date.now() - start);
      if (at.length === 3) return opened();
      if (at.length === 5) stop.abort();
      throw new ApiError(503, "away");
    },
    stop.signal,
    (state, error) => told.push(error ? `${state} ${error.status}` : state),
  );
  await vi.runAllTimersAsync();
  await done;
  expect(at).toEqual([0, 500, 1500, 2000, 3000]);
  expect(told).toEqual(["lost 503", "lost 503", "live", "lost", "lost 503"]);
});

it.each([401, 403, 404])("does not ask again after %i", async (status) => {
  let calls = 0;
  const open = async () => {
    calls++;
    throw new ApiError(status, "no");
  };
  await keepOpen(open, new AbortController().signal, () => {});
  expect(calls).toBe(1);
});
