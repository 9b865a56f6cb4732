// What the nodes of a cluster have, and how much of it the Pods on them have asked for.

import type { HostInfo } from "../api/types";

export interface Share {
  name: string;
  /** Of this Application, of others, and what is there: as people read them. */
  app: string;
  others: string;
  capacity: string;
  /** Parts of the whole, in percent: together no more than 100. */
  appPercent: number;
  othersPercent: number;
}

const TITLES: Record<string, string> = { cpu: "CPU", memory: "Memory", storage: "Storage" };
const rounded = (n: number) => String(Math.round(n * 100) / 100);

/** Amounts are thousandths, of bytes too. */
function amount(name: string, thousandths: number): string {
  const whole = thousandths / 1000;
  if (name === "cpu") return rounded(whole);
  const gib = whole / 2 ** 30;
  return gib >= 1 ? `${rounded(gib)} GiB` : `${rounded(whole / 2 ** 20)} MiB`;
}

/** In the order of the titles; without those of which nothing is there. */
export function shares(host: HostInfo | undefined): Share[] {
  const found = (host?.resourcesInfo ?? []).filter(({ resourceName, capacity }) => resourceName && Object.hasOwn(TITLES, resourceName) && Number(capacity) > 0);
  return Object.keys(TITLES).flatMap((name) =>
    found
      .filter(({ resourceName }) => resourceName === name)
      .map((one) => {
        const [app, others, capacity] = [one.requestedByApp, one.requestedByNeighbors, one.capacity].map((n) => Math.max(0, Number(n) || 0)) as [number, number, number];
        const appPercent = Math.min(100, (app / capacity) * 100);
        const othersPercent = Math.min(100 - appPercent, (others / capacity) * 100);
        return { name: TITLES[name] ?? name, app: amount(name, app), others: amount(name, others), capacity: amount(name, capacity), appPercent, othersPercent };
      }),
  );
}

/** In words. */
export const described = ({ name, app, others, capacity }: Share) => `${name}: ${app} asked for by this Application, ${others} by others, of ${capacity}`;
