// A panel over the whole window, for logs, terminals and manifests. The address says so, so that a new tab may show nothing else.

import { withQuery } from "../router";

/** The query with the panel as large as that, and with the tab that is shown even if nobody chose it. */
export const fullQuery = (search: string, tab: string) => withQuery(search, { full: "1", tab });

/** What Escape ends: a dialog takes the key for itself, and a large panel becomes small before it is closed. */
export function endedByEscape(at: { dialog: boolean; full: boolean }): "nothing" | "full" | "panel" {
  if (at.dialog) return "nothing";
  return at.full ? "full" : "panel";
}
