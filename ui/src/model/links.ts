// Addresses of Argo CD's page, as notifications, wikis and bookmarks have them: the address of this page that shows the same.

const SETTINGS: Record<string, string> = { repos: "repositories", clusters: "clusters", certs: "trust", gpgkeys: "trust", accounts: "accounts", appearance: "appearance", projects: "" };
const TABS: Record<string, string> = { event: "events", manifest: "live", exec: "terminal" };
/** Ways to draw the resources, which are in `tree` here, and panels that are always there. */
const DRAWN = ["tree", "pods", "network", "list"];
const WITHOUT_USE = ["operation", "conditions", "hydrateOperation", "highlight"];

const withQuery = (path: string, query: URLSearchParams) => (query.size > 0 ? `${path}?${query}` : path);

/** `kind:Pod,kind:Job,health:Degraded` as words of the filter. */
const resourceWords = (items: string) => items.split(",").filter((item) => /^(kind|name|namespace|sync|health):\S+$/.test(item)).join(" ");

function ofApplication(path: string, query: URLSearchParams): string {
  const wanted = new URLSearchParams(query);
  const move = (from: string, to: string, text: (value: string) => string) => {
    const value = query.get(from);
    if (value === null) return;
    if (from !== to) wanted.delete(from);
    const found = text(value);
    if (found) wanted.set(to, found);
    else wanted.delete(to);
  };
  // Its last part says which container.
  move("node", "node", (node) => {
    const key = node.split("/").slice(0, 4).join("/");
    return key.startsWith("argoproj.io/Application/") && key.split("/")[3] === path.split("/").map(decodeURIComponent).at(-1) ? "" : key;
  });
  move("tab", "tab", (tab) => (Object.hasOwn(TABS, tab) ? (TABS[tab] ?? "") : tab));
  move("resource", "res", resourceWords);
  const drawn = query.get("view") ?? "";
  if (["pods", "list", "network"].includes(drawn)) wanted.set("tree", drawn);
  move("view", "view", (view) => (DRAWN.includes(view) ? "" : view));
  for (const name of WITHOUT_USE) wanted.delete(name);
  move("rollback", "view", (at) => (Number(at) >= 0 && at !== "" ? "history" : (wanted.get("view") ?? "")));
  move("orphaned", "orphaned", (shown) => (shown === "true" ? shown : ""));
  move("deploy", "ask", () => "sync");
  return withQuery(path, wanted);
}

/** The page of one container's logs: a panel here. */
function ofLogs(parts: string[], query: URLSearchParams): string {
  const [, ...names] = parts;
  // With the Application's namespace before its name, or without it.
  const [app, [namespace = "", container = ""]] = names.length === 5 ? [names.slice(0, 2), names.slice(2)] : [names.slice(0, 1), names.slice(1)];
  const pod = query.get("podName");
  const of = pod ? ["", "Pod", namespace, pod] : [query.get("group") ?? "", query.get("kind") ?? "", namespace, query.get("name") ?? ""];
  return `/applications/${app.map(encodeURIComponent).join("/")}?${new URLSearchParams({ node: of.join("/"), tab: "logs", container, full: "1" })}`;
}

/** The address here for one of Argo CD's, from its path and query; the same if it is one of this page's. */
export function address(pathname: string, search: string): string {
  const here = pathname + search;
  const query = new URLSearchParams(search);
  let parts: string[];
  try {
    parts = pathname.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return here;
  }
  const [top, second, third] = parts;
  if (top === "applications" && parts.at(-1) === "logs" && parts.length >= 5) return ofLogs(parts, query);
  if (top === "applications" && second && parts.length <= 3) return ofApplication(pathname, query);
  if (top === "user-info") return "/settings?view=accounts";
  if (top === "help") return "/settings?view=about";
  if (top !== "settings" || !second) return here;
  if (second === "projects" && third) return `/settings?${new URLSearchParams({ project: third })}`;
  return SETTINGS[second] ? `/settings?view=${SETTINGS[second]}` : "/settings";
}
