import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, it } from "vitest";
import { Later, loaded, NotLoaded } from "./later";

/** What stands there after this error; none: before any. */
function shown(error?: unknown) {
  const part = new Later({ fallback: "soon", children: createElement("p", null, "the part") });
  if (error !== undefined) part.state = Later.getDerivedStateFromError(error);
  return renderToStaticMarkup(part.render());
}

it("shows the part", () => expect(shown()).toContain("the part"));

it("says that the page is newer when the part's file is gone", async () => {
  const gone = new TypeError("Failed to fetch dynamically imported module");
  const error = await loaded(() => Promise.reject(gone)).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(NotLoaded);
  expect((error as NotLoaded).cause).toBe(gone);
  expect(shown(error)).toContain("The page is newer now: reload.");
  expect(await loaded(async () => 1)).toBe(1);
});

it("says what failed in the part itself", () => {
  expect(shown(new Error("no list"))).toContain("no list");
  expect(shown(new Error("no list"))).not.toContain("newer");
});
