// Words for states with a shape and a colour. The shape tells them apart for those who see colours differently.

import type { ReactNode } from "react";

type Tone = "good" | "warn" | "bad" | "busy" | "off" | "pause";

const SHAPES: Record<string, ReactNode> = {
  check: <path d="M3.5 8.5l3 3 6-7" />,
  up: <path d="M8 13V3.5M3.8 7.5L8 3.2l4.2 4.3" />,
  question: <path d="M5.6 6a2.5 2.5 0 1 1 3.6 2.2C8.3 8.7 8 9.2 8 10M8 12.700v.1" />,
  heart: <path d="M8 13.200S2.5 9.8 2.5 6.200A2.9 2.9 0 0 1 8 4.900a2.9 2.9 0 0 1 5.5 1.300C13.5 9.8 8 13.2 8 13.200z" />,
  spin: <path d="M13.5 8A5.5 5.5 0 1 1 8 2.5" />,
  cross: <path d="M4 4l8 8M12 4l-8 8" />,
  ghost: <path d="M3.5 13.500V7a4.5 4.5 0 0 1 9 0v6.500l-2.25-1.500L8 13.500l-2.25-1.500zM6.5 7v.1M9.5 7v.1" />,
  bars: <path d="M5.5 3.500v9M10.5 3.500v9" />,
};

const STATES: Record<string, [Tone, string]> = {
  Synced: ["good", "check"],
  OutOfSync: ["warn", "up"],
  Healthy: ["good", "heart"],
  Progressing: ["busy", "spin"],
  Degraded: ["bad", "cross"],
  Suspended: ["pause", "bars"],
  Missing: ["warn", "ghost"],
  Unknown: ["off", "question"],
  Running: ["busy", "spin"],
  Terminating: ["busy", "spin"],
  Succeeded: ["good", "check"],
  Failed: ["bad", "cross"],
  Successful: ["good", "check"],
  Error: ["bad", "cross"],
  Pruned: ["off", "cross"],
  PruneSkipped: ["warn", "question"],
  SyncFailed: ["bad", "cross"],
};

const stateOf = (word: string): [Tone, string] => (Object.hasOwn(STATES, word) && STATES[word]) || ["off", "question"];

export const toneOf = (word: string | undefined): Tone => stateOf(word ?? "Unknown")[0];

export function StateIcon({ word, label }: { word: string; label?: string }) {
  const [tone, shape] = stateOf(word);
  const className = `icon tone-${tone}${shape === "spin" ? " spin" : ""}`;
  // The word is beside it.
  if (label === "")
    return (
      <svg className={className} viewBox="0 0 16 16" aria-hidden="true">
        {SHAPES[shape]}
      </svg>
    );
  return (
    <svg className={className} viewBox="0 0 16 16" role="img" aria-label={label ?? word}>
      <title>{label ?? word}</title>
      {SHAPES[shape]}
    </svg>
  );
}

/** A state as a word in its colour. */
export function Badge({ word, title }: { word: string | undefined; title?: string | undefined }) {
  const state = word || "Unknown";
  const [tone, shape] = stateOf(state);
  return (
    <span className={`badge tone-${tone}`} title={title || undefined}>
      <svg className={`icon${shape === "spin" ? " spin" : ""}`} viewBox="0 0 16 16" aria-hidden="true">
        {SHAPES[shape]}
      </svg>
      {state}
    </span>
  );
}
