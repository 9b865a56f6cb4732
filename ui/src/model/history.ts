// The syncs that an Application's history keeps.

import type { Application, Deployed, Source } from "../api/types";
import { shortRevision } from "./time";
import { shortRepo } from "./url";

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
