import { afterEach, describe, expect, it, vi } from "vitest";
import { api, setSignedOutHandler } from "./client";
import { logsFile, logsQuery, type PlanWanted, resources } from "./resources";
import { settings } from "./settings";

const reply = (status: number, body: string) => vi.stubGlobal("fetch", vi.fn(async () => new Response(body, { status })));
const signal = new AbortController().signal;

afterEach(() => void vi.unstubAllGlobals());

it("reads a stream and ends with the error it carries", async () => {
  reply(200, 'data: {"result":{"nodes":[]}}\n\n:\n\ndata: {"error":{"message":"gone","http_code":503}}\n\n');
  const seen: unknown[] = [];
  const reading = api.watchTree({ name: "a b", namespace: "n" }, signal, { open: () => seen.push("open"), message: (m) => seen.push(m) });
  await expect(reading).rejects.toMatchObject({ status: 503, message: "gone" });
  expect(seen).toEqual(["open", { nodes: [] }]);
  expect(vi.mocked(fetch).mock.calls[0]?.[0]).toBe("/api/v1/stream/applications/a%20b/resource-tree?appNamespace=n");
});

it("says why a call failed", async () => {
  reply(400, '{"error":"e","message":"the revision is not there","code":3}');
  await expect(api.refresh({ name: "a", namespace: "" })).rejects.toThrow("the revision is not there");
  reply(502, "<html>");
  await expect(api.list()).rejects.toMatchObject({ status: 502, message: "<html>" });
  vi.stubGlobal("fetch", vi.fn(() => Promise.reject(new TypeError("failed"))));
  await expect(api.list()).rejects.toMatchObject({ status: 0 });
});

it("tells of a session that ended, but not of a refused login", async () => {
  const ended = vi.fn();
  setSignedOutHandler(ended);
  reply(401, '{"message":"no session information"}');
  await expect(api.login("admin", "x")).rejects.toThrow("no session information");
  expect(ended).not.toHaveBeenCalled();
  await expect(api.list()).rejects.toThrow();
  expect(ended).toHaveBeenCalledOnce();
});

describe("what a plan is made of", () => {
  const id = { name: "shop", namespace: "" };
  const asked = async (wanted: PlanWanted) => {
    vi.stubGlobal("fetch", vi.fn(async (path: string) => new Response(path.includes("manifests") ? JSON.stringify({ manifests: [path.split("?")[1] ?? ""] }) : '{"items":null}')));
    return resources.plan(id, wanted);
  };
  it("is the comparison, and the manifests of both revisions", async () => {
    const plan = await asked({ revision: "v2", compared: "abc", hydrated: false });
    expect(plan).toEqual({ managed: [], compared: ["revision=abc"], wanted: ["revision=v2"] });
  });
  it("is the manifests to sync alone when no revision was compared", async () =>
    expect(await asked({ revision: "", compared: "", hydrated: false })).toEqual({ managed: [], compared: undefined, wanted: [""] }));
  it("is the comparison alone when a hydrator renders", async () => {
    expect(await asked({ revision: "", compared: "abc", hydrated: true })).toEqual({ managed: [], compared: undefined, wanted: undefined });
    expect(fetch).toHaveBeenCalledOnce();
  });
});

describe("what is asked for", () => {
  const id = { name: "shop", namespace: "team" };
  const options = { revision: "", prune: false, dryRun: false, force: false, applyOnly: false, syncOptions: undefined, resources: undefined, retries: 0 };
  const made = async (call: () => Promise<unknown>) => {
    reply(200, "{}");
    await call();
    const [path, init] = vi.mocked(fetch).mock.calls[0] as [string, RequestInit];
    return { path, method: init.method ?? "GET", body: init.body ? (JSON.parse(String(init.body)) as unknown) : undefined };
  };
  it("says how an Application is deleted", async () => {
    const path = "/api/v1/applications/shop?appNamespace=team&";
    expect(await made(() => api.remove(id, "background"))).toMatchObject({ method: "DELETE", path: `${path}cascade=true&propagationPolicy=background` });
    expect(await made(() => api.remove(id, "none"))).toMatchObject({ path: `${path}cascade=false` });
  });
  it("leaves to the policy what nobody chose", async () => {
    const { body } = await made(() => api.sync(id, options));
    expect(body).toEqual({ appNamespace: "team", prune: false, dryRun: false, strategy: { hook: { force: false } } });
  });
  it("asks a repository what it offers to one source of an Application", async () => {
    const source = { repoURL: "https://git.example.org/a.git", path: "chart" };
    const { path, body } = await made(() => settings.details({ metadata: { name: "shop" }, spec: { project: "team" } }, source, 1));
    expect(path).toBe("/api/v1/repositories/https%3A%2F%2Fgit.example.org%2Fa.git/appdetails");
    expect(body).toEqual({ source, appName: "shop", appProject: "team", sourceIndex: 1 });
  });
  it("names the resources and options of a sync", async () => {
    const resource = { group: "apps", version: "v1", kind: "Deployment", namespace: "n", name: "a", uid: "1" };
    const { body } = await made(() => api.sync(id, { ...options, syncOptions: [], resources: [resource] }));
    expect(body).toMatchObject({ syncOptions: { items: [] }, resources: [{ group: "apps", kind: "Deployment", namespace: "n", name: "a" }] });
    expect(JSON.stringify(body)).not.toContain("uid");
  });
  it("tries a sync again as often as it was told", async () => {
    const { body } = await made(() => api.sync(id, { ...options, retries: 2 }));
    expect(body).toMatchObject({ retryStrategy: { limit: 2 } });
  });
  it("sends a patch of a live object as a text", async () => {
    const { path, body } = await made(() => resources.patch(id, { group: "apps", version: "v1", kind: "Deployment", namespace: "n", name: "a" }, '{"spec":null}'));
    expect(path).toBe("/api/v1/applications/shop/resource?appNamespace=team&group=apps&version=v1&kind=Deployment&namespace=n&resourceName=a&patchType=application%2Fmerge-patch%2Bjson");
    expect(body).toBe('{"spec":null}');
  });
  it("goes back to an entry of the history, the first included", async () => {
    expect(await made(() => api.rollback(id, 0, true))).toMatchObject({ method: "POST", body: { id: 0, prune: true, appNamespace: "team" } });
  });
  it("reads the logs of a Pod by its name, those of others by what has the Pods", () => {
    const wanted = { container: "", previous: false, follow: true, filter: "", matchCase: false, lines: 5, since: 0 };
    expect(logsQuery(id, { kind: "Pod", namespace: "n", name: "p" }, wanted)).toMatchObject({ podName: "p", namespace: "n", follow: "true", tailLines: "5" });
    const narrow = { ...wanted, filter: "a", matchCase: true, since: 60 };
    expect(logsQuery(id, { kind: "Pod", name: "p" }, narrow)).toMatchObject({ filter: "a", matchCase: "true", sinceSeconds: "60" });
    expect(logsFile(id, { kind: "Pod", name: "p" }, narrow)).toBe("/api/v1/applications/shop/logs?appNamespace=team&podName=p&filter=a&matchCase=true&sinceSeconds=60&tailLines=5&download=true");
    const query = logsQuery(id, { group: "apps", kind: "Deployment", namespace: "n", name: "d" }, wanted);
    expect(query).toMatchObject({ group: "apps", kind: "Deployment", resourceName: "d" });
    expect(query).not.toHaveProperty("podName");
  });
});
