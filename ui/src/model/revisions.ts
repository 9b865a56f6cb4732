// The revisions that a sync or a rendering is asked for.

import type { Application, Source } from "../api/types";

/** Of an Application with a list of sources: one for each. */
export type Revision = string | readonly string[];

export interface Positioned {
  revisions: string[];
  /** They begin at 1. */
  sourcePositions: number[];
}

/** A source without a revision stays at its own. */
export function positioned(revisions: readonly string[]): Positioned {
  const known = revisions.flatMap((revision, at) => (revision ? [{ revision, position: at + 1 }] : []));
  return { revisions: known.map(({ revision }) => revision), sourcePositions: known.map(({ position }) => position) };
}

/** The sources that each have a revision of their own in a sync. The server asks for positions as soon as there is a list, even of one. Undefined: there is one revision. */
export const listedSources = ({ spec }: Application): readonly Source[] | undefined => (!spec.sourceHydrator && spec.sources?.length ? spec.sources : undefined);

/** What was entered, as it is asked for. Without any revision, all sources stay at their own. */
export function entered(app: Application, one: string, each: readonly string[]): Revision {
  const sources = listedSources(app);
  if (!sources) return one.trim();
  const all = sources.map((_, at) => (each[at] ?? "").trim());
  return all.some(Boolean) ? all : "";
}
