import { expect, test } from "vitest";
import { hasFailed, provider, signInAddress } from "./sso";

test("the provider has a name if there is one", () => {
  expect(provider({})).toBeUndefined();
  expect(provider({ dexConfig: { connectors: [] } })).toBeUndefined();
  expect(provider({ oidcConfig: { issuer: "https://sso.example.com", name: "Corp" } })).toBe("Corp");
  expect(provider({ oidcConfig: { issuer: "https://sso.example.com" } })).toBe("SSO");
  expect(provider({ dexConfig: { connectors: [{ name: "GitHub" }] } })).toBe("GitHub");
  expect(provider({ dexConfig: { connectors: [{ name: "GitHub" }, { name: "SAML" }] } })).toBe("SSO");
});

test("the browser comes back to this page", () => {
  expect(signInAddress("https://cd.example.com", "/argo")).toBe("/argo/auth/login?return_url=https%3A%2F%2Fcd.example.com%2Fargo%2Fapplications");
  expect(signInAddress("https://cd.example.com")).toBe("/auth/login?return_url=https%3A%2F%2Fcd.example.com%2Fapplications");
});

test("the address says whether a sign-in has failed", () => {
  expect(hasFailed("?has_sso_error=true")).toBe(true);
  expect(hasFailed("?has_sso_error=false&x=true")).toBe(false);
  expect(hasFailed("")).toBe(false);
});
