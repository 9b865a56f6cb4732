// A project as it is entered: lists of rows, and lines that hold several values.

import type { Project, ProjectSpec } from "../api/settings";
import { cleanedIntegrity } from "./integrity";

export type Row = Record<string, unknown>;

/** Of a list in a spec: without empty lines and empty rows. A row keeps its other fields. */
function cleanedList(list: readonly unknown[]): unknown[] {
  return list
    .map((item) => (typeof item === "string" ? item.trim() : typeof item === "object" && item !== null ? cleanedRow(item as Row) : item))
    .filter((item) => item !== "" && !(typeof item === "object" && item !== null && Object.keys(item).length === 0));
}

function cleanedRow(row: Row): Row {
  const entries = Object.entries(row).map(([key, value]) => [key, Array.isArray(value) ? cleanedList(value) : typeof value === "string" ? value.trim() : value] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0)));
}

/** A row in which nothing was entered is no row: an empty group is one that means the core group, so a kind, a name or anything else must be there. */
const isBlank = (row: unknown) => typeof row === "object" && row !== null && Object.values(row).every((value) => value === "" || value === undefined);

/** What is saved of a form: empty lines and rows are not meant. An empty list of allowed kinds is: it allows none. */
export function cleaned(spec: ProjectSpec): ProjectSpec {
  const entries = Object.entries(spec).map(([key, value]) => [key, Array.isArray(value) ? cleanedList(value).filter((row) => !isBlank(row)) : value] as const);
  const wanted = Object.fromEntries(entries.filter(([key, value]) => value !== undefined && (key === "namespaceResourceWhitelist" || !(Array.isArray(value) && value.length === 0)))) as ProjectSpec;
  const orphaned = wanted.orphanedResources;
  if (orphaned?.ignore) wanted.orphanedResources = { ...orphaned, ignore: cleanedList(orphaned.ignore).filter((row) => !isBlank(row)) as Row[] };
  const integrity = wanted.sourceIntegrity && cleanedIntegrity(wanted.sourceIntegrity);
  if (integrity) wanted.sourceIntegrity = integrity;
  else delete wanted.sourceIntegrity;
  return wanted;
}

/** Policies of a role name it: those of a role with a new name must, too. */
export function policyOf(project: string, role: string, policy: string): string {
  const text = policy.trim();
  // What is short is completed: `applications, sync, shop/*, allow`.
  return text === "" || text.startsWith("p,") ? text : `p, proj:${project}:${role}, ${text}`;
}

/** Short policies in full. */
export function withPolicies({ metadata, spec }: Project): ProjectSpec {
  const roles = spec.roles?.map((role) => ({ ...role, policies: role.policies?.map((policy) => policyOf(metadata.name, role.name, policy)) ?? [] }));
  return roles ? { ...spec, roles } : spec;
}

export const emptyProject = (): Project => ({ metadata: { name: "" }, spec: { sourceRepos: ["*"], destinations: [{ server: "*", namespace: "*" }] } });

/** The seconds of `30d`, `12h`, `15m`; 0 for nothing; undefined when it is none of them. */
export function seconds(text: string): number | undefined {
  if (!text.trim()) return 0;
  const [, count, unit] = /^\s*(\d{1,6})\s*([dhm])\s*$/.exec(text) ?? [];
  return count && unit ? Number(count) * { d: 86_400, h: 3600, m: 60 }[unit as "d" | "h" | "m"] : undefined;
}

/** The entries of a known_hosts file: comments and empty lines are none. */
export function knownHosts(text: string): { serverName: string; certType: string; certSubType: string; certData: string }[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line && !line.startsWith("#"))
    .flatMap((line) => {
      const [hosts = "", kind, key] = line.split(/\s+/);
      if (!kind || !key) throw new Error(`This line is no entry of a known_hosts file: ${line.slice(0, 80)}`);
      return hosts.split(",").map((serverName) => ({ serverName, certType: "ssh", certSubType: kind, certData: btoa(key) }));
    });
}
