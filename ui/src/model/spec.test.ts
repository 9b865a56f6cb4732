import { expect, it } from "vitest";
import type { Application } from "../api/types";
import { specText, withSpec } from "./spec";

const app = {
  metadata: { name: "shop" },
  spec: {
    project: "default",
    source: { repoURL: "https://git.example.org/a.git", targetRevision: "1e3", helm: { values: "a: 1\nb: |\n  x\n", parameters: [{ name: "on", value: "yes" }, { name: "n", value: "012" }] } },
    ignoreDifferences: [{ kind: "Deployment", jqPathExpressions: ['.spec.template.spec.containers[] | select(.name == "a")'] }],
    info: [],
    future: { a: null, b: 1.5, c: "" },
  },
  status: { sync: { status: "Synced" } },
} as unknown as Application;

it("is the same after it was shown and read", async () => expect(await withSpec(app, specText(app))).toEqual(app));

it("has what was entered, and the rest of the Application", async () => {
  const changed = await withSpec(app, specText(app).replace("project: default", "project: team\nrevisionHistoryLimit: 3"));
  expect(changed).toEqual({ ...app, spec: { ...app.spec, project: "team", revisionHistoryLimit: 3 } });
});

it.each([
  ["a text", "no spec"],
  ["", "no spec"],
  ["- a", "no spec"],
  ["kind: Application\nspec: {}", "kind, spec: only what is below"],
  ["a: [", "Flow sequence"],
])("refuses %j", async (text, why) => expect(withSpec(app, text)).rejects.toThrow(why));
