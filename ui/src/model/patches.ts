// Patches of Kustomize as rows of a form: a row has the fields of the target beside those of the patch.

import type { KustomizePatch } from "../api/types";
import type { Row } from "./project";

const TARGET = "target.";

export const patchRows = (patches: readonly KustomizePatch[] | undefined): Row[] =>
  (patches ?? []).map(({ target, ...patch }) => ({ ...patch, ...Object.fromEntries(Object.entries(target ?? {}).map(([key, value]) => [TARGET + key, value])) }));

/** Of what was entered; a row without anything is none. What no column shows of a patch stays. */
export function patchesOf(rows: readonly Row[]): KustomizePatch[] {
  return rows.flatMap((row) => {
    const entered = Object.entries(row).filter(([, value]) => value !== undefined && value !== "");
    const isTarget = ([key]: [string, unknown]) => key.startsWith(TARGET);
    const target = entered.filter(isTarget).map(([key, value]) => [key.slice(TARGET.length), value]);
    const patch = Object.fromEntries(entered.filter((entry) => !isTarget(entry)));
    if (target.length > 0) patch["target"] = Object.fromEntries(target);
    return Object.keys(patch).length > 0 ? [patch as KustomizePatch] : [];
  });
}
