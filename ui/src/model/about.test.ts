import { expect, it } from "vitest";
import { versionFacts } from "./about";

it("says of the version what the server says", () => {
  expect(versionFacts({ HelmVersion: "v3.18.4", Version: "1.2.3", KubectlVersion: "", GitTreeState: "clean" })).toEqual([
    ["Tiphys", "1.2.3"],
    ["Helm", "v3.18.4"],
  ]);
});
