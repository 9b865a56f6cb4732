// The path below which the server serves the page (`--rootpath`): "" or "/argocd". The server writes it
// into the page.

const named = typeof document === "undefined" ? null : document.querySelector('meta[name="tiphys-root"]');

export const ROOT = (named?.getAttribute("content") ?? "").replace(/\/+$/, "");

/** The page's own path of a path in the browser's address. */
export function inside(pathname: string, root: string = ROOT): string {
  if (root === "" || !(pathname === root || pathname.startsWith(`${root}/`))) return pathname;
  return pathname.slice(root.length) || "/";
}
