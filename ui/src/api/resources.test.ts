import { afterEach, expect, it, vi } from "vitest";
import { resources } from "./resources";

afterEach(() => void vi.unstubAllGlobals());

it("asks for the manifests of each source's revision, and leaves alone a source without one", async () => {
  const asked: URL[] = [];
  vi.stubGlobal("fetch", vi.fn(async (path: string) => (asked.push(new URL(path, "http://page")), Response.json({ manifests: [] }))));
  const id = { name: "a", namespace: "argocd" };
  await resources.plan(id, { revision: ["r1", "", "r3"], compared: [], hydrated: false });
  await resources.plan(id, { revision: "r1", compared: "r0", hydrated: false });
  const manifests = asked.filter(({ pathname }) => pathname.endsWith("/manifests")).map(({ searchParams }) => [searchParams.getAll("revision"), searchParams.getAll("revisions"), searchParams.getAll("sourcePositions")]);
  expect(manifests).toEqual([
    [[], ["r1", "r3"], ["1", "3"]],
    [["r0"], [], []],
    [["r1"], [], []],
  ]);
});
