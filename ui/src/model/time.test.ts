import { expect, it } from "vitest";
import { age, shortRevision } from "./time";

const now = Date.parse("2024-05-10T12:00:00Z");

it.each([
  ["2024-05-10T11:59:58Z", "2 s"],
  ["2024-05-10T12:00:09Z", "0 s"],
  ["2024-05-10T11:57:01Z", "2 min"],
  ["2024-05-10T01:00:00Z", "11 h"],
  ["2024-05-01T12:00:00Z", "9 d"],
  ["2022-05-10T12:00:00Z", "2 y"],
  ["nonsense", ""],
  [undefined, ""],
])("age(%j)", (then, want) => expect(age(then, now)).toBe(want));

it("shortens commits but not names", () => {
  expect(shortRevision("014ec988f67ce92863970cbd42c4a380716ca39e")).toBe("014ec98");
  expect(shortRevision("release-1.2")).toBe("release-1.2");
  expect(shortRevision(undefined)).toBe("");
});
