import { expect, it } from "vitest";
import { endedByEscape, fullQuery } from "./full";

it("is in the address, together with what is shown", () => {
  expect(fullQuery("?node=%2FPod%2Fn%2Fweb", "logs")).toBe("?node=%2FPod%2Fn%2Fweb&full=1&tab=logs");
  expect(fullQuery("?node=a&tab=live&container=main", "live")).toBe("?node=a&tab=live&container=main&full=1");
});

it("ends before the panel does", () => {
  const at = [{ dialog: true, full: true }, { dialog: true, full: false }, { dialog: false, full: true }, { dialog: false, full: false }];
  expect(at.map(endedByEscape)).toEqual(["nothing", "nothing", "full", "panel"]);
});
