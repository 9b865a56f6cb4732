import { expect, test } from "vitest";
import { inside } from "./root";

test("paths below the root", () => {
  for (const [pathname, root, own] of [
    ["/applications/a", "", "/applications/a"],
    ["/argo/applications/a", "/argo", "/applications/a"],
    ["/argo", "/argo", "/"],
    ["/argo/", "/argo", "/"],
    ["/argonaut", "/argo", "/argonaut"],
    ["/a/b/catalog", "/a/b", "/catalog"],
  ] as const)
    expect(inside(pathname, root)).toBe(own);
});
