import { describe, expect, it } from "vitest";
import type { ProjectSpec } from "../api/settings";
import { cleaned, knownHosts, policyOf, seconds, withPolicies } from "./project";

describe("a project that is saved", () => {
  it("has no empty lines and rows, and keeps what no form shows", () => {
    const spec: ProjectSpec = {
      sourceRepos: [" https://git.example.org/a.git ", ""],
      destinations: [{ server: "*", namespace: "shop" }, { server: "", namespace: "" }],
      clusterResourceWhitelist: [{ group: "", kind: "Namespace" }, {}],
      namespaceResourceBlacklist: [],
      orphanedResources: { warn: false, ignore: [{ group: "", kind: "" }, { kind: "ConfigMap", name: "x*" }] },
      syncWindows: [{ kind: "allow", schedule: "0 1 * * *", duration: "1h", applications: ["*", ""], manualSync: false, syncOverrun: true } as object],
      destinationServiceAccounts: [{ server: "s", defaultServiceAccount: "a" }],
    };
    expect(cleaned(spec)).toEqual({
      sourceRepos: ["https://git.example.org/a.git"],
      destinations: [{ server: "*", namespace: "shop" }],
      clusterResourceWhitelist: [{ group: "", kind: "Namespace" }],
      orphanedResources: { warn: false, ignore: [{ kind: "ConfigMap", name: "x*" }] },
      syncWindows: [{ kind: "allow", schedule: "0 1 * * *", duration: "1h", applications: ["*"], syncOverrun: true }],
      destinationServiceAccounts: [{ server: "s", defaultServiceAccount: "a" }],
    });
  });
  it("allows no kinds in namespaces, or all", () => {
    expect(cleaned({ namespaceResourceWhitelist: [] })).toEqual({ namespaceResourceWhitelist: [] });
    expect(cleaned({ namespaceResourceWhitelist: [{ group: "", kind: "" }] })).toEqual({ namespaceResourceWhitelist: [] });
    expect("namespaceResourceWhitelist" in cleaned({ namespaceResourceWhitelist: undefined })).toBe(false);
  });
  it("has no monitoring of orphaned resources when that was switched off", () => expect("orphanedResources" in cleaned({ orphanedResources: undefined })).toBe(false));
  it("has policies in full", () => {
    expect(policyOf("shop", "ci", "applications, sync, shop/*, allow")).toBe("p, proj:shop:ci, applications, sync, shop/*, allow");
    expect(policyOf("shop", "ci", "p, proj:shop:ci, logs, get, shop/*, deny")).toBe("p, proj:shop:ci, logs, get, shop/*, deny");
    const spec = withPolicies({ metadata: { name: "shop" }, spec: { roles: [{ name: "ci", groups: ["g"], policies: ["logs, get, shop/*, allow", " "] }] } });
    expect(spec.roles).toEqual([{ name: "ci", groups: ["g"], policies: ["p, proj:shop:ci, logs, get, shop/*, allow", ""] }]);
  });
});

it("reads durations", () => expect(["", "30d", " 12h", "15m", "1w", "x"].map(seconds)).toEqual([0, 2_592_000, 43_200, 900, undefined, undefined]));

it("reads known hosts", () => {
  const key = { certType: "ssh", certSubType: "ssh-ed25519", certData: btoa("AAAA") };
  expect(knownHosts("# hosts\n\ngit.example.org,[10.0.0.1]:22 ssh-ed25519 AAAA me\n")).toEqual([
    { serverName: "git.example.org", ...key },
    { serverName: "[10.0.0.1]:22", ...key },
  ]);
  expect(() => knownHosts("git.example.org ssh-ed25519")).toThrow("no entry of a known_hosts file: git.example.org ssh-ed25519");
});
