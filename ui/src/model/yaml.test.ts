import { expect, it } from "vitest";
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
