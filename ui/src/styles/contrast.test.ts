// What is written can be read: at least 4.5 to 1 for text, 3 to 1 for the edges of fields (WCAG 2.2, AA).

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const css = readFileSync(new URL("./base.css", import.meta.url), "utf8");
type Rgb = [number, number, number];

/** The colours of a theme: the dark one replaces some of the light one's. */
function colours(theme: "light" | "dark"): (name: string) => Rgb {
  const [light = "", dark = ""] = [/^:root \{([^}]*)\}/m, /:root:not\(\[data-theme="light"\]\) \{([^}]*)\}/].map((block) => block.exec(css)?.[1]);
  const all = [...((theme === "light" ? light : light + dark).matchAll(/--([\w-]+): (#[0-9a-f]{6});/g) ?? [])];
  const known = new Map(all.map(([, name, value]) => [name, value]));
  return (name) => {
    const value = known.get(name);
    if (!value) throw new Error(`there is no colour --${name}`);
    return [1, 3, 5].map((at) => parseInt(value.slice(at, at + 2), 16)) as Rgb;
  };
}

function luminance(colour: Rgb): number {
  const [r, g, b] = colour.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4)) as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: Rgb, b: Rgb): number {
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

const mixed = (a: Rgb, b: Rgb, share: number) => a.map((part, i) => share * part + (1 - share) * (b[i] ?? 0)) as Rgb;

describe.each(["light", "dark"] as const)("the %s theme", (theme) => {
  const of = colours(theme);
  const grounds = ["card", "page"];
  it.each(["ink", "dim", "accent"].flatMap((text) => [...grounds, "hover"].map((ground) => [text, ground])))("%s on %s", (text, ground) =>
    expect(contrast(of(text), of(ground))).toBeGreaterThanOrEqual(4.5),
  );
  it.each(["added", "removed"])("a line that is %s", (ground) => {
    expect(contrast(of("ink"), of(ground))).toBeGreaterThanOrEqual(4.5);
    expect(contrast(of("dim"), of(ground))).toBeGreaterThanOrEqual(4.5);
  });
  // A badge stands on 12 % of its own colour.
  it.each(["good", "warn", "bad", "busy", "pause", "off"].flatMap((tone) => grounds.map((ground) => [tone, ground])))("a badge in %s on %s", (tone, ground) =>
    expect(contrast(of(tone), mixed(of(tone), of(ground), 0.12))).toBeGreaterThanOrEqual(4.5),
  );
  it("buttons and the bar", () => {
    expect(contrast(of("accent-ink"), of("accent"))).toBeGreaterThanOrEqual(4.5);
    expect(contrast(of("on-bar"), of("bar"))).toBeGreaterThanOrEqual(4.5);
  });
  it.each(grounds)("the edge of a field on %s", (ground) => expect(contrast(of("field"), of(ground))).toBeGreaterThanOrEqual(3));
});

it("the dark theme is the same whether the system or somebody has chosen it", () => {
  const [system, chosen] = [/:root:not\(\[data-theme="light"\]\) \{([^}]*)\}/, /^:root\[data-theme="dark"\] \{([^}]*)\}/m].map((block) => [...(block.exec(css)?.[1] ?? "").matchAll(/--[\w-]+: [^;]+;/g)].map(([line]) => line));
  expect(system?.length).toBeGreaterThan(15);
  expect(chosen).toEqual(system);
});
