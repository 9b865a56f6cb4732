// The page's addresses: /applications and /applications/<name> (or <namespace>/<name>, or ?namespace=);
// /applicationsets likewise; /catalog and /catalog/<namespace>/<repository>/<chart>; /settings. What is chosen on a page is in the query, so that a link shows the same.

import { type MouseEvent, type ReactNode, useSyncExternalStore } from "react";
import type { AppName } from "./api/client";
import { ROOT, inside } from "./root";

/** A chart is known by its repository and where it is below it. */
export interface ChartName {
  namespace: string;
  repository: string;
  path: string;
}

export type Route = { page: "list" } | { page: "application"; id: AppName } | { page: "catalog" } | { page: "chart"; chart: ChartName } | { page: "sets" } | { page: "set"; id: AppName } | { page: "settings" } | { page: "login" } | { page: "unknown" };

export function parseRoute(pathname: string, search: string): Route {
  let parts: string[];
  try {
    parts = pathname.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return { page: "unknown" };
  }
  const [top, first, second] = parts;
  if (!top || (top === "applications" && parts.length === 1)) return { page: "list" };
  if (top === "settings" && parts.length === 1) return { page: "settings" };
  if (top === "login" && parts.length === 1) return { page: "login" };
  if (top === "catalog") return catalogRoute(parts);
  const namespace = new URLSearchParams(search).get("namespace") ?? "";
  if (top === "applicationsets" && parts.length === 1) return { page: "sets" };
  if (!["applications", "applicationsets"].includes(top) || !first || parts.length > 3) return { page: "unknown" };
  return { page: top === "applications" ? "application" : "set", id: second ? { namespace: first, name: second } : { namespace, name: first } };
}

function catalogRoute(parts: string[]): Route {
  const [, namespace, repository, path] = parts;
  if (!namespace) return { page: "catalog" };
  return repository && path && parts.length === 4 ? { page: "chart", chart: { namespace, repository, path } } : { page: "unknown" };
}

export const chartPath = (chart: ChartName) =>
  `/catalog/${[chart.namespace, chart.repository, chart.path].map(encodeURIComponent).join("/")}`;

const named = (below: string, id: AppName) => `${below}/${encodeURIComponent(id.name)}${id.namespace ? `?namespace=${encodeURIComponent(id.namespace)}` : ""}`;

export const applicationPath = (id: AppName) => named("/applications", id);
export const setPath = (id: AppName) => named("/applicationsets", id);

const CHANGED = "tiphys:navigated";

/** With `instead`, `Back` does not lead to where one was. */
export function navigate(to: string, instead = false) {
  // Nobody wants to go back to where they are.
  const isHere = location.pathname + location.search === ROOT + to;
  if (instead || isHere) history.replaceState(null, "", ROOT + to);
  else history.pushState(null, "", ROOT + to);
  window.dispatchEvent(new Event(CHANGED));
}

/** A query with some of its values replaced; an empty value is left out. */
export function withQuery(search: string, part: Record<string, string>): string {
  const query = new URLSearchParams(search);
  for (const [name, value] of Object.entries(part)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  return text && `?${text}`;
}

/** Changes the query. `Back` leaves the page then, as before. */
export function setQuery(part: Record<string, string>) {
  history.replaceState(null, "", location.pathname + withQuery(location.search, part));
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

/** A value of the query; empty when it is not there. */
export const useQuery = (name: string) => new URL(useAddress(), location.origin).searchParams.get(name) ?? "";

interface LinkProps {
  to: string;
  children: ReactNode;
  className?: string;
  label?: string;
  /** The link leads to where one is. */
  current?: boolean;
}

export function Link({ to, children, className, label, current }: LinkProps) {
  const click = (e: MouseEvent) => {
    if (e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    navigate(to);
  };
  return (
    <a href={ROOT + to} className={className} aria-label={label} aria-current={current ? "page" : undefined} onClick={click}>
      {children}
    </a>
  );
}
