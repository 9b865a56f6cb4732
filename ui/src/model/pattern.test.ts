import { expect, it } from "vitest";
import { fits } from "./pattern";

it.each<[string, string[], string[]]>([
  ["prod", ["prod"], ["prod-1", "Prod", ""]],
  ["", [""], ["a"]],
  ["*", ["", "a", "a/b"], []],
  ["prod-*", ["prod-", "prod-eu"], ["prod", "a-prod-eu"]],
  ["s*p-p*d", ["shop-prod"], ["shop-pro"]],
  ["*a*a", ["aa", "bab-a"], ["a", "aab"]],
  ["team-?", ["team-a", "team-1"], ["team-", "team-ab"]],
  ["v[0-9].[!0]", ["v1.1", "v9.x"], ["v1.0", "vx.1", "v1."]],
  ["[^a]b", ["bb"], ["ab", "b"]],
  ["[]]x", ["]x"], ["[]]", "x"]],
  ["[a-]", ["a", "-"], ["b"]],
  ["a[b", ["a[b"], ["ab"]],
  ["{prod,stage}-*", ["prod-1", "stage-1"], ["dev-1", "{prod,stage}-1"]],
  ["a{b,c{d,e}}f", ["abf", "acdf", "acef"], ["acf", "af"]],
  ["{a,}b", ["ab", "b"], ["cb"]],
  ["{a}", ["{a}"], ["a"]],
  ["{{a,b}}", ["{a}", "{b}"], ["a"]],
  ["a{b", ["a{b"], ["ab"]],
  ["a\\*b", ["a*b"], ["axb", "a\\xb"]],
  ["\\{a,b\\}", ["{a,b}"], ["a"]],
  ["https://git.example.org/a.git?x=[1]", ["https://git.example.org/a.git?x=[1]", "https://git.example.org/a.git?x=1"], []],
])("%s", (pattern, yes, no) => {
  expect(yes.filter((value) => !fits(pattern, value))).toEqual([]);
  expect(no.filter((value) => fits(pattern, value))).toEqual([]);
});

it("answers patterns that stand for very many", () => {
  expect(fits("*a".repeat(40), "a".repeat(5000) + "b")).toBe(false);
  expect(fits("{a,b}".repeat(30), "a".repeat(30))).toBe(false);
  expect(fits("{a,b}".repeat(30), "{a,b}".repeat(30))).toBe(true);
  expect(fits("{a,b}".repeat(5), "ababa")).toBe(true);
});
