import { expect, it } from "vitest";
import { expecting } from "./expected.mjs";

/** Tests once, after what comes meanwhile has come. */
const until = (problems, more) => async (what, test) => {
  problems.push(...more);
  if (!test()) throw new Error(what);
};

it("removes what was expected, and nothing else", async () => {
  const refused = "the server responded with a status of 400 (Bad Request)";
  const problems = ["x is undefined", refused];
  const expected = expecting(problems, until(problems, [refused, "Refused to load a script", refused]));
  await expected("two refused calls", /status of 400/, 2);
  expect(problems).toEqual(["x is undefined", "Refused to load a script", refused]);
});

it("waits for all that was expected", async () => {
  const problems = ["status of 404"];
  const expected = expecting(problems, until(problems, []));
  await expect(expected("two calls", /status of 404/, 2)).rejects.toThrow("the browser has reported two calls");
  expect(problems).toEqual(["status of 404"]);
});
