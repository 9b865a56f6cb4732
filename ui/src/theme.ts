// Light, dark, or as the system has it.

import { kept } from "./kept";

export const THEMES = { auto: "As the system has it", light: "Light", dark: "Dark" } as const;
export type Theme = keyof typeof THEMES;

export const themeOf = (text: string): Theme => (Object.hasOwn(THEMES, text) ? (text as Theme) : "auto");

/** The stylesheet knows both by this attribute; without it the system decides. */
export function applyTheme() {
  const theme = themeOf(kept("theme"));
  const { dataset } = document.documentElement;
  if (theme === "auto") delete dataset["theme"];
  else dataset["theme"] = theme;
}
