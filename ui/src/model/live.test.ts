import { describe, expect, it } from "vitest";
import { ApiError } from "../api/client";
import { changeLive, liveText, mergePatch, overlaps, patchFor } from "./live";

const deployment = (replicas: number, version: string, more: object = {}) =>
  JSON.stringify({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "n", uid: "1", resourceVersion: version, managedFields: [{}], annotations: { on: "yes", number: "012" } },
    spec: { replicas, template: { spec: { containers: [{ name: "a", image: "a:1" }] } }, ...more },
    status: { replicas },
  });

describe("a merge patch", () => {
  it.each([
    [{ a: 1 }, { a: 1 }, undefined],
    [{ a: 1, b: { c: 1, d: 2 } }, { b: { d: 2, c: 1 }, a: 1 }, undefined],
    [{ a: 1, b: { c: 1, d: 2 } }, { a: 1, b: { c: 2, d: 2 } }, { b: { c: 2 } }],
    [{ a: 1, b: 2 }, { a: 1 }, { b: null }],
    [{ a: [1, 2] }, { a: [2] }, { a: [2] }],
    [{}, { a: { b: 1 } }, { a: { b: 1 } }],
    [{ a: 1 }, { a: { b: 1 } }, { a: { b: 1 } }],
    [{}, { toString: "a" }, { toString: "a" }],
  ])("%j to %j: %j", (before, after, patch) => expect(mergePatch(before, after)).toEqual(patch));
});

it("is about the same only where both changed something", () => {
  const before = { a: 1, b: { c: 1, d: 1 }, e: [1] };
  expect(overlaps({ b: { c: 2 } }, before, { ...before, a: 2, b: { c: 1, d: 2 } })).toEqual([]);
  expect(overlaps({ b: { c: 2 }, e: null }, before, { a: 1, b: { c: 3, d: 1 } })).toEqual(["b.c", "e"]);
  expect(overlaps({ b: { c: 2 } }, before, { a: 1 })).toEqual(["b"]);
});

describe("a live object that is edited", () => {
  const text = liveText(deployment(1, "7"));
  it("shows what people enter", () => {
    expect(text).toContain("replicas: 1");
    expect(text).not.toMatch(/status|managedFields|resourceVersion|uid/);
  });
  it("is nothing new as it was shown", async () => expect(await patchFor(text, text)).toBeUndefined());
  it("stays the object that it is", async () => {
    await expect(patchFor(text, text.replace("name: web", "name: other"))).rejects.toThrow("metadata.name: cannot be changed");
    await expect(patchFor(text, "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 3}\n")).rejects.toThrow("metadata.name, metadata.namespace: cannot be changed");
    await expect(patchFor(text, "a list")).rejects.toThrow("no manifest");
  });
  const scaled = text.replace("replicas: 1", "replicas: 3");
  it("is changed as the version that was looked at", async () => {
    const sent: string[] = [];
    await changeLive(deployment(1, "7"), scaled, async () => deployment(1, "9", { paused: true }), async (patch) => sent.push(patch));
    expect(sent.map((patch) => JSON.parse(patch) as unknown)).toEqual([{ spec: { replicas: 3 }, metadata: { resourceVersion: "9" } }]);
  });
  it("is looked at again when it changed meanwhile", async () => {
    let version = 7;
    const look = async () => deployment(1, String(version));
    const sent: number[] = [];
    await changeLive(deployment(1, "7"), scaled, look, async () => {
      sent.push(version);
      if (version++ < 9) throw new ApiError(409, "conflict");
    });
    expect(sent).toEqual([7, 8, 9]);
    await expect(changeLive(deployment(1, "7"), scaled, look, async () => Promise.reject(new ApiError(403, "no")))).rejects.toThrow("no");
  });
  it("is not written over what somebody else changed", async () => {
    const never = async () => expect.unreachable();
    await expect(changeLive(deployment(1, "7"), scaled, async () => deployment(2, "8"), never)).rejects.toThrow("spec.replicas");
    await expect(changeLive(deployment(1, "7"), text, async () => deployment(1, "7"), never)).rejects.toThrow("Nothing was changed");
  });
  it("is not written into another one of its name, or into none", async () => {
    const never = async () => expect.unreachable();
    const other = JSON.parse(deployment(1, "8")) as { metadata: { uid: string } };
    other.metadata.uid = "2";
    await expect(changeLive(deployment(1, "7"), scaled, async () => JSON.stringify(other), never)).rejects.toThrow("another one of that name");
    for (const gone of ["", "null"]) await expect(changeLive(deployment(1, "7"), scaled, async () => gone, never)).rejects.toThrow("It is gone");
  });
});

/** How it is shown, what of it is entered as what, and what is sent or why nothing is. */
async function edited(object: object, from: string, to: string, answer?: ApiError) {
  const manifest = JSON.stringify(object);
  const text = liveText(manifest);
  expect(text).toContain(from);
  const sent: unknown[] = [];
  const send = async (patch: string) => {
    sent.push(JSON.parse(patch));
    if (answer) throw answer;
  };
  // It has the version of a later change that nobody can see.
  const later = async () => JSON.stringify({ ...object, metadata: { ...(object as { metadata: object }).metadata, resourceVersion: "9" } });
  const why = await changeLive(manifest, text.replace(from, to), later, send).then(
    () => "",
    (e: Error) => e.message,
  );
  return { sent, why };
}

describe("what is shown masked", () => {
  const last = { "kubectl.kubernetes.io/last-applied-configuration": '{"data":{"a":"++++++++"}}' };
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "s", resourceVersion: "7", annotations: last }, data: { a: "++++++++", b: "++++++++" } };
  const source = (repoURL: string, path: string) => ({ repoURL, path });
  const app = { apiVersion: "argoproj.io/v1alpha1", kind: "Application", metadata: { name: "a", resourceVersion: "7" }, spec: { sources: [source("https://u:******@h/r", "one"), source("https://h/r?token=******", "two")] } };
  it.each<[string, object, string, string, string]>([
    ["a mask of another key", secret, "  b: ", "  c: ", "data.c"],
    ["a longer mask", secret, '  b: "++++++++"', '  b: "++++++++++++"', "data.b"],
    ["a mask in a text", secret, "}}", "}} ", "metadata.annotations"],
    ["the password of an element", app, "path: two", "path: three", "spec.sources[0].repoURL"],
    ["a token in a query", { ...app, spec: { sources: [app.spec.sources[1]] } }, "path: two", "path: three", "spec.sources[0].repoURL"],
  ])("%s is not written", async (_, object, from, to, field) => {
    const { sent, why } = await edited(object, from, to);
    expect(sent).toEqual([]);
    expect(why).toContain(field);
    expect(why).toContain("shown to nobody");
  });
  it("may be changed beside that, as the version that was shown", async () => {
    expect(await edited(secret, '  b: "++++++++"', "  b: bmV3")).toEqual({ sent: [{ data: { b: "bmV3" }, metadata: { resourceVersion: "7" } }], why: "" });
    const refused = await edited(secret, '  b: "++++++++"', "  b: bmV3", new ApiError(409, "conflict"));
    expect([refused.sent.length, refused.why]).toEqual([1, "It was changed meanwhile: look again."]);
  });
  it("is a text like any other elsewhere", async () => {
    const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m" }, data: { a: "x" } };
    expect((await edited(map, "a: x", 'a: "https://u:******@h ++++++++"')).why).toBe("");
    expect((await edited(map, "a: x", "a: ++++++++")).why).toBe("");
  });
});

it("is not written rounded", async () => {
  const object = { apiVersion: "a/v1", kind: "A", metadata: { name: "a" }, spec: { ids: [{ id: 2 ** 53, loud: false }], one: 2 ** 53, other: 1 } };
  const { sent, why } = await edited(object, "loud: false", "loud: true");
  expect(sent).toEqual([]);
  expect(why).toContain("spec.ids[0].id");
  expect((await edited(object, "other: 1", "other: 2")).why).toBe("");
});
