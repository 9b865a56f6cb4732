import { describe, expect, it } from "vitest";
import { type Answers, fieldsOf, valuesOf } from "./schema";

const schema = (properties: object, more: object = {}) => JSON.stringify({ type: "object", properties, ...more });
const summary = (text: string) => fieldsOf(text).map((f) => `${f.path.join(".")}:${f.kind}${f.fallback && `=${f.fallback}`}`);

describe("fieldsOf", () => {
  it.each([
    ["no schema", "", []],
    ["no JSON", "{", []],
    ["no map", "[1]", []],
    ["types", schema({ a: { type: "string", default: "x" }, b: { type: "integer", default: 2 }, c: { type: "boolean", default: false } }), ["a:text=x", "b:integer=2", "c:boolean=false"]],
    ["null beside a type", schema({ a: { type: ["string", "null"] } }), ["a:text"]],
    ["several types, lists and free maps", schema({ a: { type: ["string", "number"] }, b: { type: "array" }, c: { type: "object" } }), []],
    ["below", schema({ image: { properties: { tag: { type: "string" } } } }), ["image.tag:text"]],
    ["a choice", schema({ a: { enum: ["x", 1, null], default: 1 } }), ["a:choice=1"]],
    ["a definition", schema({ a: { $ref: "#/definitions/n~1m", default: 3 } }, { definitions: { "n/m": { type: "number" } } }), ["a:number=3"]],
    ["a definition elsewhere", schema({ a: { $ref: "https://example.org/x.json" }, b: { type: "string" } }), ["a:note", "b:text"]],
    ["a definition in a file", schema({ a: { $ref: "../x.json#/a" } }), ["a:note"]],
    ["a recursive definition", schema({ tree: { $ref: "#/$defs/node" }, n: { type: "integer" } }, { $defs: { node: { type: "object", properties: { kids: { type: "array", items: { $ref: "#/$defs/node" } } } } } }), ["n:integer"]],
    ["a definition of itself", schema({ a: { $ref: "#/properties/a" } }), []],
    ["a tree without an end", schema({ a: { $ref: "#" } }), []],
    ["a default that is no answer", schema({ a: { type: "string", default: { b: 1 } } }), ["a:text"]],
    ["names of every object", '{"properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}}}', ["constructor:text"]],
  ])("%s", (_, text, want) => expect(summary(text)).toEqual(want));

  it("is bounded", () => {
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`f${i}`, { type: "string" }]));
    expect(fieldsOf(schema(many)).length).toBe(200);
  });

  it("says what it does not fetch", () => {
    const [field] = fieldsOf(schema({ a: { $ref: "https://example.org/x.json" } }));
    expect(field?.description).toBe("schema not available: https://example.org/x.json");
  });

  it("takes titles and descriptions", () => {
    const [field] = fieldsOf(schema({ a: { type: "string", title: "A", description: "What a is" } }));
    expect(field).toMatchObject({ title: "A", description: "What a is" });
  });
});

describe("valuesOf", () => {
  const fields = fieldsOf(
    schema({
      name: { type: "string" },
      image: { properties: { tag: { type: "string" }, pull: { type: "boolean" } } },
      replicas: { type: "integer" },
      ratio: { type: "number" },
      size: { enum: ["s", 2] },
      constructor: { properties: { name: { type: "string" } } },
    }),
  );
  it.each<[string, Answers, object]>([
    ["nothing", {}, {}],
    ["an empty text is an answer", { name: "" }, { name: "" }],
    ["below one map", { "image\0tag": "1.20", "image\0pull": "true" }, { image: { tag: "1.20", pull: true } }],
    ["numbers", { replicas: "3", ratio: "0.5" }, { replicas: 3, ratio: 0.5 }],
    ["no numbers", { replicas: "3.5", ratio: "" }, {}],
    ["a choice is one of them", { size: "2" }, { size: 2 }],
    ["and no other", { size: '"xl"' }, {}],
    ["what has no field", { other: "x" }, {}],
    ["names of every object", { "constructor\0name": "x" }, { constructor: { name: "x" } }],
  ])("%s", (_, answers, want) => expect(valuesOf(fields, answers)).toEqual(want));
});
