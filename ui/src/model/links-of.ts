// The links that are shown of an Application or of a resource.

import type { DeepLink } from "../api/types";
import { safeUrl } from "./url";

export interface ShownLink {
  title: string;
  url: string;
  description: string | undefined;
}

/** `title|address` in an annotation has a name of its own. */
function named(text: string): { title?: string; url: string } {
  const at = text.indexOf("|");
  return at < 0 ? { url: text } : { title: text.slice(0, at).trim(), url: text.slice(at + 1).trim() };
}

/** Only what may be a link, and each address once. */
export function allLinks(links: readonly DeepLink[] | undefined, known: readonly string[] | undefined): ShownLink[] {
  const all = [...(links ?? []), ...(known ?? []).map((text): DeepLink => named(text))];
  const shown = new Map<string, ShownLink>();
  for (const { title, url, description } of all) {
    const safe = safeUrl(url);
    if (safe && !shown.has(safe)) shown.set(safe, { title: title || safe.replace(/^https?:\/\//, "").replace(/\/$/, ""), url: safe, description });
  }
  return [...shown.values()];
}
