import { expect, it } from "vitest";
import type { Application } from "../api/types";
import { NO_PICKS, pickOf, stillShown, withPick } from "./picks";

const app = (name: string, uid?: string): Application => ({ metadata: { name, namespace: "n", ...(uid && { uid }) }, spec: {} });

it("an Application that is made again is not chosen", () => {
  const picks = withPick(withPick(NO_PICKS, app("a", "1")), app("b", "2"));
  expect(picks.has(pickOf(app("a", "3")))).toBe(false);
  expect([...stillShown(picks, [app("a", "3"), app("b", "2")])]).toEqual(["2"]);
  expect(withPick(picks, app("a", "1")).size).toBe(1);
});

it("what is hidden does not come back chosen", () => {
  const picks = withPick(NO_PICKS, app("a", "1"));
  const left = stillShown(picks, [app("b", "2")]);
  expect(left.size).toBe(0);
  expect(stillShown(left, [app("a", "1")]).size).toBe(0);
  // The same object, so that nothing is drawn again.
  expect(stillShown(picks, [app("b", "2"), app("a", "1")])).toBe(picks);
});
