// What the browser keeps for this page: how somebody likes it. Storage may be switched off; then it lasts until a reload.

import { useSyncExternalStore } from "react";

export type Kept = "view" | "favourites" | "diff" | "theme";

export const CHANGED = "tiphys:kept";
const keyOf = (name: Kept) => `tiphys:${name}`;
/** What the storage did not take: it may be switched off, or full. */
const memory = new Map<Kept, string>();

/** Empty when nothing is kept. */
export function kept(name: Kept): string {
  const here = memory.get(name);
  if (here !== undefined) return here;
  try {
    return localStorage.getItem(keyOf(name)) ?? "";
  } catch {
    return "";
  }
}

export function keep(name: Kept, text: string) {
  try {
    if (text) localStorage.setItem(keyOf(name), text);
    else localStorage.removeItem(keyOf(name));
    memory.delete(name);
  } catch {
    memory.set(name, text);
  }
  globalThis.dispatchEvent?.(new Event(CHANGED));
}

function subscribe(changed: () => void) {
  // Another tab of the same browser tells by `storage`.
  window.addEventListener("storage", changed);
  window.addEventListener(CHANGED, changed);
  return () => {
    window.removeEventListener("storage", changed);
    window.removeEventListener(CHANGED, changed);
  };
}

export const useKept = (name: Kept): string => useSyncExternalStore(subscribe, () => kept(name), () => "");
