import { expect, it } from "vitest";
import type { SourceIntegrity } from "../api/settings";
import { cleanedIntegrity, policyRows, withPolicyRows } from "./integrity";
import { cleaned } from "./project";

const integrity = { git: { policies: [{ repos: [{ url: "https://git.example.org/*", more: 1 }], gpg: { mode: "head", keys: ["A"], since: "x" }, note: "n" }], other: true } } as object as SourceIntegrity;

it("stays as it is, with what no column shows", () => {
  expect(withPolicyRows(integrity, policyRows(integrity))).toEqual(integrity);
  expect(cleanedIntegrity(integrity)).toEqual(integrity);
});

it("takes what is entered", () => {
  const [row = {}] = policyRows(integrity);
  const changed = withPolicyRows(integrity, [{ ...row, keys: ["A", "B"] }, { repos: ["!*"], mode: "none", keys: [] }]);
  expect(changed?.git?.policies).toEqual([
    { ...integrity.git?.policies?.[0], gpg: { mode: "head", keys: ["A", "B"], since: "x" } },
    { repos: [{ url: "!*" }], gpg: { mode: "none", keys: [] } },
  ]);
});

it("is saved without empty lines and policies, and without any when the last is gone", () => {
  const entered = withPolicyRows(undefined, [{ repos: [" * ", ""], mode: "strict", keys: ["A", ""] }, { repos: [""], mode: "head", keys: [] }]);
  expect(cleaned({ sourceIntegrity: entered })).toEqual({ sourceIntegrity: { git: { policies: [{ repos: [{ url: "*" }], gpg: { mode: "strict", keys: ["A"] } }] } } });
  expect(cleaned({ sourceIntegrity: withPolicyRows(entered, []) })).toEqual({});
});
