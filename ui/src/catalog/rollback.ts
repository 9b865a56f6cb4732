// The versions of its chart that an Application had, and the Application with one of them. Pure.

import type { Application, Source } from "../api/types";

const ANNOTATION = "catalog.tiphys.dev";

/** A version that an Application had. */
export interface Before {
  version: string;
  source: Source;
  deployedAt: string;
}

const sameChart = (a: Source, b: Source) => a.chart === b.chart && a.repoURL === b.repoURL;

/** The newest first, each version once, without the present one. Only where the chart is the one source. */
export function versionsBefore(app: Application): Before[] {
  const now = app.spec.source;
  if (!now?.chart || (app.spec.sources ?? []).length > 0) return [];
  const found: Before[] = [];
  for (const { source, revision, deployedAt } of [...(app.status?.history ?? [])].reverse()) {
    if (!source || !sameChart(source, now)) continue;
    // A range is what it was resolved to.
    const version = revision || source.targetRevision || "";
    if (version === "" || version === now.targetRevision || found.some((one) => one.version === version)) continue;
    found.push({ version, source: { ...source, targetRevision: version }, deployedAt: deployedAt ?? "" });
  }
  return found;
}

/** The Application as it is written: that version with the values of then. Its digest is not known here. */
export function rolledBack(app: Application, to: Before): Application {
  const { [`${ANNOTATION}/digest`]: _, ...annotations } = app.metadata.annotations ?? {};
  return {
    ...app,
    metadata: { ...app.metadata, annotations: { ...annotations, [`${ANNOTATION}/version`]: to.version } },
    spec: { ...app.spec, source: to.source },
  };
}
