import { afterEach, expect, it, vi } from "vitest";
import { type Cluster, manage } from "../api/settings";
import { accessForm, accessOf, accessProblem, clusterChange, clusterForm } from "./cluster";

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

it("says of a new one what was entered", () => {
  const empty: Cluster = { server: "" };
  expect(clusterChange(empty, { ...clusterForm(empty), name: "c", namespaces: "a\n" })).toEqual({ name: "c", namespaces: ["a"] });
});

it("signs in with what was entered, in the API's form", () => {
  const entered = { ...accessForm(), bearerToken: " token\n", ca: "-----BEGIN CERTIFICATE-----\nü", serverName: "c" };
  const { tlsClientConfig, ...others } = accessOf(undefined, entered);
  expect(others).toEqual({ bearerToken: "token" });
  expect({ ...tlsClientConfig, caData: Buffer.from(tlsClientConfig?.caData ?? "", "base64").toString() }).toEqual({ insecure: false, serverName: "c", caData: "-----BEGIN CERTIFICATE-----\nü\n" });
});

it("replaces credentials, and keeps what no form shows of the way to sign in", () => {
  const stored = { proxyUrl: "http://p", disableCompression: true, awsAuthConfig: { clusterName: "c" }, tlsClientConfig: { insecure: true, serverName: "s" } };
  expect(accessOf(stored, { ...accessForm(stored), insecure: false, username: "me", password: "secret" })).toEqual({
    disableCompression: true,
    proxyUrl: "http://p",
    username: "me",
    password: "secret",
    tlsClientConfig: { insecure: false, serverName: "s" },
  });
  const other = accessOf(stored, { ...accessForm(stored), proxyUrl: "http://q" });
  expect([other.awsAuthConfig, other.proxyUrl]).toEqual([{ clusterName: "c" }, "http://q"]);
});

it("says what contradicts itself", () => {
  const said = (part: object) => accessProblem({ ...accessForm(), ...part });
  expect([said({}), said({ bearerToken: "t", ca: "x" }), said({ cert: "c", key: "k" })]).toEqual([undefined, undefined, undefined]);
  expect(said({ insecure: true, ca: "x" })).toContain("certificate authority");
  expect([said({ cert: "c" }), said({ key: "k" })].every((text) => text?.includes("belong together"))).toBe(true);
  expect(said({ bearerToken: "t", username: "u" })).toContain("two ways");
});
