import { describe, expect, it } from "vitest";
import { diffLines, fold, pairs } from "./diff";

const SIGN = { same: " ", added: "+", removed: "-" };
const show = (a: string, b: string) => diffLines(a, b).map((l) => SIGN[l.kind] + l.text);

describe("diffLines", () => {
  it.each([
    ["a\nb\nc", "a\nb\nc", [" a", " b", " c"]],
    ["a\nb\nc", "a\nx\nc", [" a", "-b", "+x", " c"]],
    ["", "a\nb", ["+a", "+b"]],
    ["a\nb", "", ["-a", "-b"]],
    ["a\nb\nc\nd", "b\nc\ne\nd", ["-a", " b", " c", "+e", " d"]],
  ])("%j to %j", (a, b, want) => expect(show(a, b)).toEqual(want));

  it("always gives both texts back, with their line numbers", () => {
    let seed = 7;
    const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n;
    const make = () => Array.from({ length: random(30) + 1 }, () => "abcd"[random(4)]).join("\n");
    for (let round = 0; round < 300; round++) {
      const [a, b] = [make(), make()];
      const lines = diffLines(a, b);
      const [old, young] = [lines.filter((l) => l.kind !== "added"), lines.filter((l) => l.kind !== "removed")];
      expect(old.map((l) => l.text).join("\n")).toBe(a);
      expect(young.map((l) => l.text).join("\n")).toBe(b);
      expect(old.map((l) => l.old)).toEqual(old.map((_, i) => i + 1));
      expect(young.map((l) => l.new)).toEqual(young.map((_, i) => i + 1));
    }
  });
});

it("folds what is far from changes", () => {
  const a = Array.from({ length: 20 }, (_, i) => `line ${i}`);
  const hunks = fold(diffLines(a.join("\n"), a.with(10, "changed").join("\n")), 2);
  expect(hunks.map((h) => ("folded" in h ? h.folded : h.lines.length))).toEqual([8, 6, 7]);
});

it("puts what is removed beside what is added in its place, and loses no line", () => {
  const [a, b] = ["same\none\ntwo\nlast", "same\n1\nlast\nmore"];
  const found = pairs(diffLines(a, b));
  expect(found.map((pair) => [pair.old?.text, pair.new?.text])).toEqual([
    ["same", "same"],
    ["one", "1"],
    ["two", undefined],
    ["last", "last"],
    [undefined, "more"],
  ]);
  expect(found.map((pair) => [pair.old?.old, pair.new?.new])).toEqual([[1, 1], [2, 2], [3, undefined], [4, 3], [undefined, 4]]);
});
