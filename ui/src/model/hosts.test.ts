import { expect, it } from "vitest";
import { described, shares } from "./hosts";

const GIB = 2 ** 30 * 1000;

it("says what a node has, and what is asked for", () => {
  const [cpu, memory, ...others] = shares({
    name: "worker-a",
    resourcesInfo: [
      { resourceName: "memory", requestedByApp: String(GIB), requestedByNeighbors: GIB / 2, capacity: 4 * GIB },
      { resourceName: "cpu", requestedByApp: 500, requestedByNeighbors: 250, capacity: 2000 },
      { resourceName: "pods", capacity: 110_000 },
      { resourceName: "storage", requestedByApp: 1 },
    ],
  });
  expect(others).toEqual([]);
  expect(cpu).toEqual({ name: "CPU", app: "0.5", others: "0.25", capacity: "2", appPercent: 25, othersPercent: 12.5 });
  expect(memory && described(memory)).toBe("Memory: 1 GiB asked for by this Application, 512 MiB by others, of 4 GiB");
});

it("draws no more than there is", () => {
  const [one] = shares({ resourcesInfo: [{ resourceName: "cpu", requestedByApp: 3000, requestedByNeighbors: 9000, capacity: 4000 }] });
  expect([one?.appPercent, one?.othersPercent]).toEqual([75, 25]);
  expect([shares(undefined), shares({ name: "a", resourcesInfo: null })]).toEqual([[], []]);
});
