import { describe, expect, it } from "vitest";
import type { Application } from "../api/types";
import { isUnchanged } from "./api";

const app = (metadata: object, revision = "1.0.0", status = "Synced"): Application => ({
  metadata: { name: "shop", ...metadata },
  spec: { source: { repoURL: "https://charts.example", chart: "web", targetRevision: revision } },
  status: { sync: { status } },
});

describe("isUnchanged", () => {
  const before = app({ resourceVersion: "1", annotations: { a: "1", b: "2" } });
  it.each<[string, Application, boolean]>([
    ["the status", app({ resourceVersion: "2", annotations: { b: "2", a: "1" } }, "1.0.0", "OutOfSync"), true],
    ["a refresh", app({ annotations: { a: "1", b: "2", "argocd.argoproj.io/refresh": "hard" } }), true],
    ["the version", app({ annotations: { a: "1", b: "2" } }, "1.1.0"), false],
    ["an annotation", app({ annotations: { a: "1", b: "3" } }), false],
    ["a label", app({ labels: { team: "x" }, annotations: { a: "1", b: "2" } }), false],
  ])("%s", (_, now, want) => expect(isUnchanged(before, now)).toBe(want));
});
