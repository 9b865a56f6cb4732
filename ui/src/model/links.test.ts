import { describe, expect, it } from "vitest";
import { address } from "./links";

describe("an address of Argo CD shows the same here", () => {
  it.each([
    ["/applications/argocd/shop?view=tree&resource=", "/applications/argocd/shop"],
    ["/applications/argocd/shop?view=network&resource=kind%3APod%2Chealth%3ADegraded", "/applications/argocd/shop?res=kind%3APod+health%3ADegraded&tree=network"],
    ["/applications/argocd/shop?node=apps%2FDeployment%2Fns%2Fweb%2F0&tab=logs", "/applications/argocd/shop?node=apps%2FDeployment%2Fns%2Fweb&tab=logs"],
    ["/applications/argocd/shop?node=%2FPod%2Fns%2Fweb-1%2F2&tab=manifest", "/applications/argocd/shop?node=%2FPod%2Fns%2Fweb-1&tab=live"],
    ["/applications/argocd/shop?node=argoproj.io/Application/argocd/shop/0&tab=event", "/applications/argocd/shop?tab=events"],
    ["/applications/argocd/apps?node=argoproj.io/Application/argocd/shop/0", "/applications/argocd/apps?node=argoproj.io%2FApplication%2Fargocd%2Fshop"],
    ["/applications/shop?operation=true", "/applications/shop"],
    ["/applications/shop?orphaned=false", "/applications/shop"],
    ["/applications/shop?orphaned=true&view=list", "/applications/shop?orphaned=true&tree=list"],
    ["/applications/shop?view=pods&podSortMode=topLevelResource", "/applications/shop?podSortMode=topLevelResource&tree=pods"],
    ["/applications/shop?rollback=0", "/applications/shop?view=history"],
    ["/applications/shop?rollback=-1", "/applications/shop"],
    ["/applications/shop?deploy=all", "/applications/shop?ask=sync"],
    ["/applications/argocd/shop/ns/main/logs?podName=web-1", "/applications/argocd/shop?node=%2FPod%2Fns%2Fweb-1&tab=logs&container=main&full=1"],
    ["/applications/shop/ns/main/logs?group=apps&kind=Deployment&name=web", "/applications/shop?node=apps%2FDeployment%2Fns%2Fweb&tab=logs&container=main&full=1"],
    ["/settings/projects/store?tab=roles", "/settings?project=store"],
    ["/settings/projects", "/settings"],
    ["/settings/repos", "/settings?view=repositories"],
    ["/settings/clusters/https%3A%2F%2Fkubernetes.default.svc", "/settings?view=clusters"],
    ["/settings/certs", "/settings?view=trust"],
    ["/settings/gpgkeys", "/settings?view=trust"],
    ["/settings/accounts/admin", "/settings?view=accounts"],
    ["/settings/appearance", "/settings?view=appearance"],
    ["/user-info", "/settings?view=accounts"],
    ["/help", "/settings?view=about"],
  ])("%s", (theirs, ours) => {
    const url = new URL(theirs, "http://localhost");
    expect(address(url.pathname, url.search)).toBe(ours);
    // One that was moved stays where it is.
    const again = new URL(ours, "http://localhost");
    expect(address(again.pathname, again.search)).toBe(ours);
  });

  it.each(["/", "/applications?proj=store&sync=OutOfSync", "/applicationsets/argocd/teams", "/settings?view=clusters", "/catalog/a/b/c", "/applications/%", "/nowhere"])("%s is one of ours", (ours) => {
    const at = ours.indexOf("?");
    expect(address(at < 0 ? ours : ours.slice(0, at), at < 0 ? "" : ours.slice(at))).toBe(ours);
  });
});
