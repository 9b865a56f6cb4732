// Times as people read them.

const STEPS: [number, string][] = [
  [86_400 * 365, "y"],
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
];

/** How long ago, in its largest unit: `3 min`. Clocks differ a little, so the future counts as now. */
export function age(then: string | undefined, now: number): string {
  const at = then ? Date.parse(then) : NaN;
  if (Number.isNaN(at)) return "";
  const seconds = Math.max(0, Math.floor((now - at) / 1000));
  const step = STEPS.find(([size]) => seconds >= size);
  return step ? `${Math.floor(seconds / step[0])} ${step[1]}` : `${seconds} s`;
}

export function ago(then: string | undefined, now: number): string {
  const text = age(then, now);
  return text && `${text} ago`;
}

export function exact(then: string | undefined): string | undefined {
  const at = then ? new Date(then) : undefined;
  return at && !Number.isNaN(at.getTime()) ? at.toLocaleString() : undefined;
}

export const shortRevision = (text: string | undefined) => (text && /^[0-9a-f]{40,64}$/.test(text) ? text.slice(0, 7) : (text ?? ""));
