// Small hooks that several parts share.

import { useEffect, useState, useSyncExternalStore } from "react";

/** The time, renewed often enough for ages. */
export function useNow(every = 5000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

export function useMedia(query: string): boolean {
  const subscribe = (changed: () => void) => {
    const media = matchMedia(query);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  };
  return useSyncExternalStore(subscribe, () => matchMedia(query).matches);
}

export function useTitle(title: string) {
  useEffect(() => {
    document.title = `${title} · Tiphys`;
  }, [title]);
}
