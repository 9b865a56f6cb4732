// What is entered of a source hydrator: the branch that it writes to, and that is synced. Its dry source is entered as a source.

import type { Source, SourceHydrator } from "../api/types";

export interface HydratorForm {
  /** The branch that is synced. */
  branch: string;
  /** The folder in it. */
  folder: string;
  /** Of the branch; empty: that of the dry source. */
  repoURL: string;
  /** The branch that is written to instead, if somebody else moves the one that is synced. */
  to: string;
}

export const hydratorForm = (hydrator?: SourceHydrator): HydratorForm => ({
  branch: hydrator?.syncSource?.targetBranch ?? "",
  folder: hydrator?.syncSource?.path ?? "",
  repoURL: hydrator?.syncSource?.repoURL ?? "",
  to: hydrator?.hydrateTo?.targetBranch ?? "",
});

/** Of charts and of value files of others there is no dry source. */
export const canBeDry = (sources: readonly { isChart: boolean; ref: string }[]) => sources.length === 1 && sources.every(({ isChart, ref }) => !isChart && !ref);

/** A dry source has fewer fields than another one. */
function dryOf(source: Source): NonNullable<SourceHydrator["drySource"]> {
  const { chart: _chart, ref: _ref, ...others } = source;
  const { name: _name, tagPrefix: _tagPrefix, ...dry } = others as typeof others & { name?: string; tagPrefix?: string };
  return dry;
}

/** Only what was changed in the form is changed. */
export function withHydrator(hydrator: SourceHydrator | undefined, dry: Source, form: HydratorForm): SourceHydrator {
  const wanted: SourceHydrator = { ...hydrator, drySource: hydrator ? dry : dryOf(dry) };
  const before = hydratorForm(hydrator);
  const differs = (...keys: (keyof HydratorForm)[]) => !hydrator || keys.some((key) => before[key] !== form[key]);
  if (differs("branch", "folder", "repoURL")) {
    const { repoURL: _repoURL, ...others } = hydrator?.syncSource ?? {};
    wanted.syncSource = { ...others, targetBranch: form.branch, path: form.folder, ...(form.repoURL && { repoURL: form.repoURL }) };
  }
  if (differs("to")) {
    if (form.to) wanted.hydrateTo = { ...hydrator?.hydrateTo, targetBranch: form.to };
    else delete wanted.hydrateTo;
  }
  return wanted;
}
