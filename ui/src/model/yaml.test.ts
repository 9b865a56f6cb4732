import { expect, it } from "vitest";
import { readYaml } from "./set-form";
import { manifestYaml, toYaml } from "./yaml";

it("prints what a manifest has", () => {
  const value = {
    apiVersion: "v1",
    data: { "a.b/c": "hello world", on: "yes", n: "12", text: "one\n  two\n", tail: "x\ny", tab: "a\tb\nc", empty: "", url: "http://x:80" },
    list: [{ name: "a", ports: [{ port: 80 }], args: ["-x", "plain"] }, "s", [1, 2], {}, []],
    none: null,
    obj: {},
    flag: true,
  };
  expect(toYaml(value)).toBe(`apiVersion: v1
data:
  a.b/c: hello world
  "on": "yes"
  "n": "12"
  text: |
    one
      two
  tail: |-
    x
    y
  tab: "a\\tb\\nc"
  empty: ""
  url: "http://x:80"
list:
- name: a
  ports:
  - port: 80
  args:
  - "-x"
  - plain
- s
- - 1
  - 2
- {}
- []
none: null
obj: {}
flag: true`);
});

it("leaves field ownership out and survives nonsense", () => {
  expect(manifestYaml('{"kind":"X","metadata":{"name":"a","managedFields":[{"manager":"m"}]}}')).toBe("kind: X\nmetadata:\n  name: a");
  expect(manifestYaml("{broken")).toBe("{broken");
  expect(manifestYaml("null")).toBe("");
  expect(manifestYaml(undefined)).toBe("");
});

it("prints texts that are read as texts, keys too", async () => {
  const signs = [".", "1", "_", "e", "y", "n", "-", "+"];
  const texts = signs.flatMap((a) => [a, ...signs.flatMap((b) => [a + b, ...signs.map((c) => a + b + c)])]);
  const all = [...texts, ".1e3", ".1_0", ".5e+10", ".inf", "./a", ".git", "..", "_5"];
  const list = (await readYaml(toYaml(all))) as unknown[];
  expect(all.filter((text, at) => list[at] !== text)).toEqual([]);
  const keys = (await readYaml(toYaml(Object.fromEntries(all.map((text) => [text, `of ${text}`]))))) as object;
  expect(all.filter((text) => (keys as Record<string, unknown>)[text] !== `of ${text}`)).toEqual([]);
  expect(toYaml({ ".5": ".1e3", ".a": "./b" })).toBe('".5": ".1e3"\n.a: ./b');
});
