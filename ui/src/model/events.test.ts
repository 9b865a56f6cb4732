import { expect, it } from "vitest";
import { newestFirst } from "./events";

it("orders events by whichever time they have", () => {
  const events = [
    { reason: "first", firstTimestamp: "2026-01-01T00:00:00Z", lastTimestamp: "2026-01-01T00:00:01Z" },
    { reason: "last", eventTime: "2026-01-01T00:00:03.5Z" },
    { reason: "between", metadata: { name: "e", creationTimestamp: "2026-01-01T00:00:02Z" } },
  ];
  expect(newestFirst(events).map((event) => event.reason)).toEqual(["last", "between", "first"]);
});
