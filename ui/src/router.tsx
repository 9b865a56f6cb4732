// The page's addresses: /applications and /applications/<name> (or <namespace>/<name>, or ?namespace=);
// /catalog and /catalog/<namespace>/<repository>/<chart>.

import { type MouseEvent, type ReactNode, useSyncExternalStore } from "react";
import type { AppName } from "./api/client";
import { ROOT, inside } from "./root";

/** A chart is known by its repository and where it is below it. */
export interface ChartName {
  namespace: string;
  repository: string;
  path: string;
}

export type Route = { page: "list" } | { page: "application"; id: AppName } | { page: "catalog" } | { page: "chart"; chart: ChartName } | { page: "login" } | { page: "unknown" };

export function parseRoute(pathname: string, search: string): Route {
  let parts: string[];
  try {
    parts = pathname.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return { page: "unknown" };
  }
  const [top, first, second] = parts;
  if (!top || (top === "applications" && parts.length === 1)) return { page: "list" };
  if (top === "login" && parts.length === 1) return { page: "login" };
  if (top === "catalog") return catalogRoute(parts);
  const namespace = new URLSearchParams(search).get("namespace") ?? "";
  if (top !== "applications" || !first || parts.length > 3) return { page: "unknown" };
  return { page: "application", id: second ? { namespace: first, name: second } : { namespace, name: first } };
}

function catalogRoute(parts: string[]): Route {
  const [, namespace, repository, path] = parts;
  if (!namespace) return { page: "catalog" };
  return repository && path && parts.length === 4 ? { page: "chart", chart: { namespace, repository, path } } : { page: "unknown" };
}

export const chartPath = (chart: ChartName) =>
  `/catalog/${[chart.namespace, chart.repository, chart.path].map(encodeURIComponent).join("/")}`;

export const applicationPath = (id: AppName) =>
  `/applications/${encodeURIComponent(id.name)}${id.namespace ? `?namespace=${encodeURIComponent(id.namespace)}` : ""}`;

const CHANGED = "tiphys:navigated";

export function navigate(to: string) {
  history.pushState(null, "", ROOT + to);
  window.dispatchEvent(new Event(CHANGED));
}

function subscribe(changed: () => void) {
  window.addEventListener("popstate", changed);
  window.addEventListener(CHANGED, changed);
  return () => {
    window.removeEventListener("popstate", changed);
    window.removeEventListener(CHANGED, changed);
  };
}

/** Path and query as they are now; draws again when they change. */
export const useAddress = () => useSyncExternalStore(subscribe, () => inside(location.pathname) + location.search);

export function Link({ to, children, className, label }: { to: string; children: ReactNode; className?: string; label?: string }) {
  const click = (e: MouseEvent) => {
    if (e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    navigate(to);
  };
  return (
    <a href={ROOT + to} className={className} aria-label={label} onClick={click}>
      {children}
    </a>
  );
}
