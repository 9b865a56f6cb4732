import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, it } from "vitest";
import { CredentialFields, isSsh, sent } from "./credentials";

it("has all that an Azure service principal needs, and hides its secret", () => {
  const of = { azureServicePrincipalClientId: "id", azureServicePrincipalTenantId: "tenant", azureActiveDirectoryEndpoint: "https://login.example.org" };
  const page = renderToStaticMarkup(createElement(CredentialFields, { of, url: "https://dev.azure.com/o/p/_git/r", set: () => {}, replaces: true }));
  const tags = page.match(/<input[^>]*name="azure[^>]*>/g) ?? [];
  const attribute = (tag: string, name: string) => new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1];
  expect(tags.map((tag) => ["name", "type", "value"].map((name) => attribute(tag, name)))).toEqual([
    ["azureServicePrincipalClientId", "text", "id"],
    ["azureServicePrincipalClientSecret", "password", ""],
    ["azureServicePrincipalTenantId", "text", "tenant"],
    ["azureActiveDirectoryEndpoint", "text", "https://login.example.org"],
  ]);
});

it("sends what was entered, and nothing that is empty or only the server's", () => {
  const entered = { repo: "r", username: "u", password: "", insecure: false, githubAppID: "17", depth: 3, connectionState: { status: "Failed" }, inheritedCreds: true };
  expect(sent(entered)).toEqual({ repo: "r", username: "u", githubAppID: 17, depth: 3 });
});

it("knows addresses of ssh", () =>
  expect(["git@example.org:team/a.git", "ssh://git@example.org/a", "https://u@example.org/a", "oci://example.org/a", "example.org/charts", ""].map(isSsh)).toEqual([true, true, false, false, false, false]));
