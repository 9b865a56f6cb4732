import { expect, it } from "vitest";
import { applicationPath, chartPath, parseRoute } from "./router";

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
  ["/settings", "", { page: "unknown" }],
  ["/catalog", "?q=web", { page: "catalog" }],
  ["/catalog/team/r/web", "", { page: "chart", chart: { namespace: "team", repository: "r", path: "web" } }],
  ["/catalog/team/r/a%2Fweb", "", { page: "chart", chart: { namespace: "team", repository: "r", path: "a/web" } }],
  ["/catalog/team/r", "", { page: "unknown" }],
])("%s%s", (path, search, want) => expect(parseRoute(path, search)).toEqual(want));

it("makes the paths it reads", () => {
  expect(chartPath({ namespace: "team", repository: "r", path: "a/web" })).toBe("/catalog/team/r/a%2Fweb");
  expect(applicationPath({ name: "shop", namespace: "" })).toBe("/applications/shop");
  expect(applicationPath({ name: "a/b", namespace: "n&m" })).toBe("/applications/a%2Fb?namespace=n%26m");
});
