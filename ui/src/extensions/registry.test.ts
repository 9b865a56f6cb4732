import { afterEach, expect, it, vi } from "vitest";
import type { Application } from "../api/types";
import { load } from "./load";
import { extensions, extensionsAPI, flyoutOf, isShown, tabsFor } from "./registry";

const Part = () => null;
const app: Application = { metadata: { name: "a" }, spec: {} };

afterEach(() => void vi.restoreAllMocks());

it("takes the calls that extensions of Argo CD make", () => {
  extensionsAPI.registerResourceExtension(Part, "argoproj.io", "Rollout", "Rollout", { icon: "fa-x" });
  extensionsAPI.registerResourceExtension(Part, "*", "{Rollout,Pod}", "Metrics");
  extensionsAPI.registerResourceExtension(Part, "apps", "*", "Other");
  extensionsAPI.registerSystemLevelExtension(Part, "Costs", "costs", "fa-x");
  extensionsAPI.registerAppViewExtension(Part, "Map", "fa-x", ({ metadata }) => metadata.name === "a");
  extensionsAPI.registerStatusPanelExtension(Part, "Load", "load");
  extensionsAPI.registerTopBarActionMenuExt(Part, "Chat", "chat", Part);
  const all = extensions();
  expect(tabsFor(all, "argoproj.io", "Rollout").map(({ title }) => title)).toEqual(["Metrics", "Rollout"]);
  expect(tabsFor(all, "", "Pod").map(({ title }) => title)).toEqual(["Metrics"]);
  expect(tabsFor(all, "apps", "Deployment").map(({ title }) => title)).toEqual(["Other"]);
  expect(all.pages.map(({ title, path }) => [title, path])).toEqual([["Costs", "/costs"]]);
  expect(all.views.map((view) => [isShown(view, app), isShown(view, { ...app, metadata: { name: "b" } })])).toEqual([[true, false]]);
  expect(all.actions.map((action) => isShown(action, app))).toEqual([true]);
  // Nothing opens what has nothing to open.
  expect([flyoutOf(all, "chat")?.title, flyoutOf(all, "load"), flyoutOf(all, "none")]).toEqual(["Chat", undefined, undefined]);
});

it("leaves out one that cannot say whether it wants to be shown", () => {
  const told = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const fails = () => {
    throw new Error("no");
  };
  expect(isShown({ title: "Bad", shouldDisplay: fails }, app)).toBe(false);
  expect(told).toHaveBeenCalledOnce();
});

it("runs the script of a server that has extensions, and gives it React", async () => {
  const run = vi.fn(async () => undefined);
  const told = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const scope: Record<string, unknown> = {};
  const answers = (text: string, status = 200) => async () => new Response(text, { status });
  for (const answer of [answers(""), answers(" \n"), answers("<!doctype html>", 404), answers("no", 500)]) await load(scope, answer, run);
  expect([run.mock.calls.length, Object.keys(scope)]).toEqual([0, []]);
  await load(scope, async () => Promise.reject(new Error("no network")), run);
  expect(run).not.toHaveBeenCalled();
  expect(told).toHaveBeenCalledOnce();
  await load(scope, answers("first()"), async () => {
    expect(typeof (scope["React"] as { createElement?: unknown }).createElement).toBe("function");
    expect(typeof (scope["ReactDOM"] as { createPortal?: unknown }).createPortal).toBe("function");
    expect(typeof (scope["ReactJSXRuntime"] as { jsx?: unknown }).jsx).toBe("function");
    expect(scope["extensionsAPI"]).toBe(extensionsAPI);
    // What old scripts do instead of a call.
    (scope["extensions"] as { resources: Record<string, unknown> }).resources["example.org/Old"] = { component: Part };
  });
  expect(tabsFor(extensions(), "example.org", "Old").map(({ title }) => title)).toContain("More");
});
