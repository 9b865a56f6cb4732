// The syncs that an Application's history keeps.

import type { Application, Deployed, Source } from "../api/types";
import { sourcesOf } from "./applications";
import { shortRevision } from "./time";
import { shortRepo } from "./url";
import { toYaml } from "./yaml";

/** The newest first. */
export const historyOf = (app: Application): Deployed[] => [...(app.status?.history ?? [])].reverse();

export const sourcesOfDeployed = (entry: Deployed): Source[] => entry.sources ?? (entry.source ? [entry.source] : []);

/** The revision of each source. */
export function revisionsOf(entry: Deployed): string[] {
  const several = entry.revisions?.filter(Boolean) ?? [];
  return several.length > 0 ? several : entry.revision ? [entry.revision] : [];
}

export const whatOf = (source: Source) => [shortRepo(source.repoURL), source.chart ?? source.path, source.targetRevision].filter(Boolean).join(" · ");

/** Only a commit of a single Git source has a message that the server finds by its revision alone. */
export function commitOf(entry: Deployed): string | undefined {
  const [source, ...others] = sourcesOfDeployed(entry);
  const [revision] = revisionsOf(entry);
  const isCommit = revision !== undefined && shortRevision(revision) !== revision;
  return source && others.length === 0 && !source.chart && !source.repoURL.startsWith("oci://") && isCommit ? revision : undefined;
}

export const isAutomated = ({ spec }: Application) => Boolean(spec.syncPolicy?.automated) && spec.syncPolicy?.automated?.enabled !== false;

/** What a rollback changes of the sources themselves; undefined: nothing. */
export function sourceChange(app: Application, to: Deployed): { before: string; after: string } | undefined {
  const texts = [sourcesOf(app), sourcesOfDeployed(to)].map((all) => toYaml(all.length === 1 ? all[0] : all));
  const [before = "", after = ""] = texts;
  return sourcesOfDeployed(to).length === 0 || before === after ? undefined : { before, after };
}

/** The revision whose manifests are those of a rollback, of each source where there is a list of them. Undefined: the server cannot be asked for them. */
export function revisionOfRollback(app: Application, to: Deployed): string | string[] | undefined {
  const revisions = to.revisions?.length ? to.revisions : to.revision ? [to.revision] : [];
  if (app.spec.sourceHydrator || revisions.length === 0) return undefined;
  const { sources } = app.spec;
  if (sources?.length) return to.sources?.length === sources.length && revisions.length === sources.length ? revisions : undefined;
  return to.sources?.length ? undefined : revisions[0];
}
