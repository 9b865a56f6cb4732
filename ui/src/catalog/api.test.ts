import { describe, expect, it } from "vitest";
import { ApiError } from "../api/client";
import type { Application } from "../api/types";
import { type InstallRequest, previewInstall } from "./api";

const app = (metadata: object, revision = "1.0.0", status = "Synced"): Application => ({
  metadata: { name: "shop", ...metadata },
  spec: { source: { repoURL: "https://charts.example", chart: "web", targetRevision: revision } },
  status: { sync: { status } },
});

describe("the preview of an install", () => {
  const request = { chart: { namespace: "n", repository: "r", path: "web", version: "1.0.0" }, name: "shop" } as InstallRequest;
  /** Answers as one who may not compare, if `refused` says how that is refused. */
  const run = async (refused?: ApiError) => {
    const asked: boolean[] = [];
    const ask = async (path: string, body: object) => {
      expect(path).toBe("/api/v1/catalog/install");
      const compare = "compare" in body && body.compare === true;
      asked.push(compare);
      if (compare && refused) throw refused;
      return { application: app({}), manifests: "kind: A", notes: ["old"], ...(compare && { difference: "+ kind: A", compared: true }) };
    };
    return { asked, preview: await previewInstall(request, ask) };
  };
  it("compares with the cluster", async () => {
    const { asked, preview } = await run();
    expect(asked).toEqual([true]);
    expect(preview).toMatchObject({ compared: true, difference: "+ kind: A", notes: ["old"] });
  });
  it("shows the manifests to those who may not see the Application, and says so", async () => {
    const { asked, preview } = await run(new ApiError(403, "applications, get is missing"));
    expect(asked).toEqual([true, false]);
    expect(preview.compared).toBeUndefined();
    expect(preview.notes).toEqual(["old", "What it would change is not known: applications, get is missing"]);
  });
  it("fails as the server does", async () => {
    await expect(run(new ApiError(400, "no such project"))).rejects.toThrow("no such project");
  });
});
