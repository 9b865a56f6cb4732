// A README as blocks and spans. Outside text never becomes HTML: what is not known here is shown as it is written.

import { safeUrl } from "../model/url";

export type Span =
  | { kind: "text" | "code" | "strong" | "em"; text: string }
  | { kind: "link"; text: string; url: string };

export type Block =
  | { kind: "heading"; level: number; spans: Span[] }
  | { kind: "paragraph"; spans: Span[] }
  | { kind: "code"; text: string }
  | { kind: "list"; ordered: boolean; items: Span[][] }
  | { kind: "table"; rows: Span[][][] }
  | { kind: "rule" };

/** Larger ones are cut: a browser draws each line. */
const MAX_LINES = 5000;

const FENCE = /^\s*(```|~~~)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)$/;
const ROW = /^\s*\|.*\|\s*$/;
const RULE = /^\s*(?:-{3,}|\*{3,}|_{3,})\s*$/;

export function blocks(text: string): Block[] {
  const lines = text.split(/\r?\n/).slice(0, MAX_LINES);
  const out: Block[] = [];
  let at = 0;
  const line = () => lines[at] ?? "";
  /** The lines from here on that fit. */
  const take = (fits: (line: string) => boolean) => {
    const from = at;
    while (at < lines.length && fits(line())) at++;
    return lines.slice(from, at);
  };
  const starts = (l: string) => FENCE.test(l) || HEADING.test(l) || ITEM.test(l) || ROW.test(l) || RULE.test(l);
  while (at < lines.length) {
    const heading = HEADING.exec(line());
    const item = ITEM.exec(line());
    if (!line().trim()) at++;
    else if (FENCE.test(line())) {
      at++;
      out.push({ kind: "code", text: take((l) => !FENCE.test(l)).join("\n") });
      at++;
    } else if (heading) {
      out.push({ kind: "heading", level: heading[1]?.length ?? 1, spans: spans(heading[2] ?? "") });
      at++;
    } else if (RULE.test(line())) {
      out.push({ kind: "rule" });
      at++;
    } else if (ROW.test(line())) out.push({ kind: "table", rows: take((l) => ROW.test(l)).filter((l) => !/^[\s|:-]+$/.test(l)).map(cells) });
    else if (item) {
      const items = take((l) => ITEM.test(l) || (/^\s+\S/.test(l) && !FENCE.test(l)));
      out.push({ kind: "list", ordered: item[1] !== undefined, items: listItems(items) });
    } else {
      const first = at;
      const taken = take((l) => Boolean(l.trim()) && (at === first || !starts(l)));
      out.push({ kind: "paragraph", spans: spans(withoutTags(taken.join(" "))) });
    }
  }
  return out;
}

function listItems(lines: string[]): Span[][] {
  const items: string[] = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item) items.push(item[2] ?? "");
    else items.push(`${items.pop() ?? ""} ${line.trim()}`);
  }
  return items.map(spans);
}

const cells = (line: string) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => spans(cell.trim().replace(/\\\|/g, "|")));

/** Comments, and tags that only arrange things: they would be noise as text. */
const withoutTags = (text: string) => text.replace(/<!--.{0,2000}?-->/g, "").replace(/<\/?(?:p|div|br|center|img|a|h[1-6])\b[^>]{0,1000}>/gi, " ").trim();

// Each part is bounded and can end in one way only: what others wrote must not keep a browser busy.
const SPAN =
  /`([^`]{1,2000})`|\*\*([^*]{1,2000})\*\*|\*([^*\s][^*]{0,2000})\*|(!?)\[([^\]]{0,300})\]\(\s{0,9}<?([^)\s>]{0,1000})>?(?:\s[^)]{0,300})?\)|<(https?:[^>\s]{1,1000})>/g;

export function spans(text: string): Span[] {
  const out: Span[] = [];
  let from = 0;
  const plain = (end: number) => {
    if (end > from) out.push({ kind: "text", text: text.slice(from, end) });
  };
  for (const found of text.matchAll(SPAN)) {
    plain(found.index);
    from = found.index + found[0].length;
    const [, code, strong, em, image, words, target, bare] = found;
    if (code !== undefined) out.push({ kind: "code", text: code });
    else if (strong !== undefined) out.push({ kind: "strong", text: strong });
    else if (em !== undefined) out.push({ kind: "em", text: em });
    else if (image) {
      // Pictures of others are not loaded.
      if (words) out.push({ kind: "text", text: words });
    } else {
      const url = safeUrl(bare ?? target);
      const shown = bare ?? (words || target || "");
      out.push(url ? { kind: "link", text: shown, url } : { kind: "text", text: shown });
    }
  }
  plain(text.length);
  return out;
}
