import { expect, it } from "vitest";
import { applicationPath, chartPath, parseRoute, setPath, withQuery } from "./router";

it.each([
  ["/", "", { page: "list" }],
  ["/applications/", "", { page: "list" }],
  ["/login", "", { page: "login" }],
  ["/applications/shop", "", { page: "application", id: { namespace: "", name: "shop" } }],
  ["/applications/shop", "?namespace=team", { page: "application", id: { namespace: "team", name: "shop" } }],
  ["/applications/team/shop", "", { page: "application", id: { namespace: "team", name: "shop" } }],
  ["/applications/a%2Fb", "", { page: "application", id: { namespace: "", name: "a/b" } }],
  ["/applications/a/b/c", "", { page: "unknown" }],
  ["/applications/%", "", { page: "unknown" }],
  ["/applicationsets", "", { page: "sets" }],
  ["/applicationsets/teams", "?namespace=team", { page: "set", id: { namespace: "team", name: "teams" } }],
  ["/applicationsets/team/teams", "", { page: "set", id: { namespace: "team", name: "teams" } }],
  ["/applicationset/teams", "", { page: "unknown" }],
  ["/settings", "", { page: "settings" }],
  ["/settings/more", "", { page: "unknown" }],
  ["/catalog", "?q=web", { page: "catalog" }],
  ["/catalog/team/r/web", "", { page: "chart", chart: { namespace: "team", repository: "r", path: "web" } }],
  ["/catalog/team/r/a%2Fweb", "", { page: "chart", chart: { namespace: "team", repository: "r", path: "a/web" } }],
  ["/catalog/team/r", "", { page: "unknown" }],
])("%s%s", (path, search, want) => expect(parseRoute(path, search)).toEqual(want));

it("makes the paths it reads", () => {
  expect(chartPath({ namespace: "team", repository: "r", path: "a/web" })).toBe("/catalog/team/r/a%2Fweb");
  expect(setPath({ name: "teams", namespace: "team" })).toBe("/applicationsets/teams?namespace=team");
  expect(applicationPath({ name: "shop", namespace: "" })).toBe("/applications/shop");
  expect(applicationPath({ name: "a/b", namespace: "n&m" })).toBe("/applications/a%2Fb?namespace=n%26m");
});

it("keeps the rest of a query, and forgets what is empty", () => {
  expect(withQuery("?namespace=team&sync=Synced", { sync: "", node: "apps/Deployment/a/b" })).toBe("?namespace=team&node=apps%2FDeployment%2Fa%2Fb");
  expect(withQuery("?search=a", { search: "" })).toBe("");
});
