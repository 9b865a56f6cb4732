// Which Applications of the list are chosen to do something with.

import type { Application } from "../api/types";
import { keyOf } from "./applications";

export type Picks = ReadonlySet<string>;

export const NO_PICKS: Picks = new Set();

/** One that was deleted and made again is another one: nobody chose it. */
export const pickOf = (app: Application) => app.metadata.uid ?? keyOf(app);

export function withPick(picks: Picks, app: Application): Picks {
  const next = new Set(picks);
  if (!next.delete(pickOf(app))) next.add(pickOf(app));
  return next;
}

/** Those that are still shown. One that is hidden or gone does not come back chosen. */
export function stillShown(picks: Picks, shown: readonly Application[]): Picks {
  if (picks.size === 0) return picks;
  const left = new Set(shown.map(pickOf).filter((pick) => picks.has(pick)));
  return left.size === picks.size ? picks : left;
}
