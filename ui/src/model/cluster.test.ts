import { afterEach, expect, it, vi } from "vitest";
import { type Cluster, manage } from "../api/settings";
import { clusterChange, clusterForm } from "./cluster";

const cluster: Cluster = {
  server: "https://c.example.org",
  name: "c",
  namespaces: ["a", "b"],
  labels: { env: "prod" },
  annotations: { note: "one\ntwo", applied: '{"a":1}\n', owner: "me=you" },
};
const form = clusterForm(cluster);

afterEach(() => vi.unstubAllGlobals());

it("says only what was changed", () => {
  expect(clusterChange(cluster, form)).toEqual({});
  expect(clusterChange(cluster, { ...form, labels: "env=test\nport=", namespaces: "a" })).toEqual({ labels: { env: "test", port: "" }, namespaces: ["a"] });
  expect(clusterChange(cluster, { ...form, namespaces: "", clusterResources: true, project: "p" })).toEqual({ namespaces: [], clusterResources: true, project: "p" });
});

it("keeps annotations that no line can hold", () => {
  expect(form.annotations).toBe("owner=me=you");
  expect(clusterChange(cluster, { ...form, annotations: "owner=they" })).toEqual({ annotations: { note: "one\ntwo", applied: '{"a":1}\n', owner: "they" } });
  expect(clusterChange(cluster, { ...form, annotations: "note=three" })).toEqual({ annotations: { note: "three", applied: '{"a":1}\n' } });
});

it("is sent as the fields that were changed", async () => {
  const fetch = vi.fn(async (_url: string, _init: RequestInit) => new Response("{}"));
  vi.stubGlobal("fetch", fetch);
  await manage.changeCluster(cluster, { labels: {}, project: "p" });
  const [url, init] = fetch.mock.calls[0] ?? [];
  expect(url).toBe("/api/v1/clusters/https%3A%2F%2Fc.example.org?updatedFields=labels&updatedFields=project");
  expect(JSON.parse(String(init?.body))).toEqual({ server: cluster.server, labels: {}, project: "p" });
  // A change without fields would replace all of the cluster.
  await manage.changeCluster(cluster, {});
  expect(fetch).toHaveBeenCalledTimes(1);
});
