// What the list of Applications is filtered by besides words. The names and values are those of Argo CD's addresses.

import type { Application } from "../api/types";
import { healthOf, sourcesOf, syncOf } from "./applications";
import { isAutomated } from "./history";
import { fits } from "./pattern";

export const FACETS = {
  sync: "Sync",
  health: "Health",
  proj: "Project",
  labels: "Label",
  annotations: "Annotation",
  cluster: "Cluster",
  namespace: "Namespace",
  repo: "Repository",
  targetRevision: "Revision",
  autoSync: "Automated sync",
  operation: "Last operation",
} as const;

export type Facet = keyof typeof FACETS;
export type Chosen = Partial<Record<Facet, readonly string[]>>;

/** Those that are chosen by name; the others have buttons of their own. */
export const NAMED: readonly Facet[] = ["proj", "labels", "annotations", "cluster", "namespace", "repo", "targetRevision", "autoSync", "operation"];

const isFacet = (name: string): name is Facet => Object.hasOwn(FACETS, name);

/** Longer values are not proposed. */
const LONG = 100;

/** What an Application has of a facet. */
export function valuesOf(app: Application, facet: Facet): string[] {
  const { destination, project } = app.spec;
  const found: (string | undefined)[] = {
    sync: () => [syncOf(app)],
    health: () => [healthOf(app)],
    proj: () => [project],
    labels: () => Object.entries(app.metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`),
    // Whole manifests are among them, which nobody would choose.
    annotations: () => Object.entries(app.metadata.annotations ?? {}).map(([key, value]) => (value.length > LONG ? key : `${key}=${value}`)),
    cluster: () => [destination?.name, destination?.server],
    namespace: () => [destination?.namespace],
    repo: () => sourcesOf(app).map(({ repoURL }) => repoURL),
    targetRevision: () => sourcesOf(app).map(({ targetRevision }) => targetRevision || "HEAD"),
    autoSync: () => [isAutomated(app) ? "Enabled" : "Disabled"],
    operation: () => [app.status?.operationState?.phase],
  }[facet]();
  return [...new Set(found.filter((value) => value !== undefined && value !== ""))] as string[];
}

/** Of labels or annotations: `key`, `!key`, `key=value`, `key==value`, `key!=value`, `key in (a, b)` or `key notin (a, b)`. */
function hasPair(labels: Readonly<Record<string, string>>, wanted: string): boolean {
  const label = (key: string) => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  const list = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(wanted.trim());
  if (list) {
    const [, key = "", how, values = ""] = list;
    const isOne = values.split(",").some((value) => value.trim() === label(key));
    return how === "in" ? isOne : !isOne;
  }
  const one = /^([^=!]+?)\s*(!=|==|=)\s*(.*)$/.exec(wanted.trim());
  if (!one) return wanted.startsWith("!") ? label(wanted.slice(1)) === undefined : label(wanted.trim()) !== undefined;
  const [, key = "", how, value = ""] = one;
  const has = label(key);
  return how === "!=" ? has !== value : has !== undefined && fits(value, has);
}

/** What Argo CD's page calls the phases of operations. */
const PHASES: Record<string, readonly string[]> = { Syncing: ["Running", "Terminating"], "Sync OK": ["Succeeded"], "Sync failed": ["Failed"], "Sync error": ["Error"] };

/** In its addresses a cluster may be `name (address)`. */
function patterns(facet: Facet, wanted: string): readonly string[] {
  if (facet === "operation") return Object.hasOwn(PHASES, wanted) ? (PHASES[wanted] ?? []) : [wanted];
  const both = facet === "cluster" ? /^(.*) \((https?:.*)\)$/.exec(wanted) : null;
  return both ? [both[1] ?? "", both[2] ?? ""] : [wanted];
}

/** Of each facet one of the chosen values is enough, but for labels and annotations: all of them are wanted. */
export function isChosen(app: Application, chosen: Chosen): boolean {
  return (Object.entries(chosen) as [Facet, readonly string[]][]).every(([facet, wanted]) => {
    if (wanted.length === 0) return true;
    if (facet === "labels" || facet === "annotations") return wanted.every((one) => hasPair(app.metadata[facet] ?? {}, one));
    const values = valuesOf(app, facet);
    return wanted.flatMap((one) => patterns(facet, one)).some((pattern) => values.some((value) => fits(pattern, value)));
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Somebody wrote a `%` as it is.
    return text;
  }
}

/** What is chosen in the query of an address: lists with commas. */
export function chosenIn(search: string): Chosen {
  const query = new URLSearchParams(search);
  const found: [string, string[]][] = [...query].filter(([name]) => isFacet(name)).map(([name, text]) => [name, text.split(",").map(decoded).filter(Boolean)]);
  return Object.fromEntries(found.filter(([, values]) => values.length > 0));
}

/** The value of the query for these. */
export const queryOf = (values: readonly string[]) => values.map((value) => value.replace(/[%,]/g, encodeURIComponent)).join(",");

/** With the value, or without it. */
export const toggled = (values: readonly string[] | undefined, value: string): string[] =>
  values?.includes(value) ? values.filter((other) => other !== value) : [...(values ?? []), value];

/** So many are proposed. */
const MOST = 200;

/** The values that there are, those of most Applications first. */
export function proposals(apps: Iterable<Application>, facet: Facet): string[] {
  const counts = new Map<string, number>();
  for (const app of apps) for (const value of valuesOf(app, facet)) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, MOST).map(([value]) => value);
}

/**
 * Whether a text was picked from those that are proposed, and so needs no Enter. Chromium has no type of input for that; whoever types, pastes
 * or deletes has one, though what comes of it may be one of the proposals.
 */
export const isPicked = (inputType: string | undefined) => !inputType || inputType === "insertReplacementText";
