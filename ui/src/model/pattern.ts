// The patterns of filters, as Argo CD's page has them: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, and `\` before one that means itself. `*` is any text.

type Token = { one: (char: string) => boolean } | "any";

/** So many alternatives make one pattern. More of them are none: then the braces mean themselves. */
const MOST_ALTERNATIVES = 200;
const MOST_KNOWN = 500;

/** The end of the group of braces that begins at `from`, and where its commas are. */
function group(pattern: string, from: number): { end: number; commas: number[] } | undefined {
  const commas: number[] = [];
  let depth = 0;
  for (let at = from; at < pattern.length; at++) {
    const char = pattern[at];
    if (char === "\\") at++;
    else if (char === "{") depth++;
    else if (char === "," && depth === 1) commas.push(at);
    else if (char === "}" && --depth === 0) return { end: at, commas };
  }
  return undefined;
}

/** The patterns without braces that it stands for. Undefined: there are too many. */
function alternatives(pattern: string): string[] | undefined {
  const done: string[] = [];
  const open: [string, number][] = [[pattern, 0]];
  while (open.length > 0) {
    const [text, from] = open.pop() as [string, number];
    let at = from;
    let found: ReturnType<typeof group>;
    for (; at < text.length; at++) {
      if (text[at] === "\\") at++;
      else if (text[at] === "{" && (found = group(text, at)) && found.commas.length > 0) break;
      else found = undefined;
    }
    if (!found) done.push(text);
    else {
      const { end, commas } = found;
      const bounds = [at, ...commas, end];
      for (const [n, bound] of bounds.slice(0, -1).entries()) open.push([text.slice(0, at) + text.slice(bound + 1, bounds[n + 1]) + text.slice(end + 1), at]);
    }
    if (done.length + open.length > MOST_ALTERNATIVES) return undefined;
  }
  return done;
}

/** The class of characters that begins after a `[`, and where it ends. Without an end it is none. */
function characters(pattern: string, from: number): { one: (char: string) => boolean; end: number } | undefined {
  const isNot = pattern[from] === "!" || pattern[from] === "^";
  const start = isNot ? from + 1 : from;
  // At the beginning, it is a character like others.
  const end = pattern.indexOf("]", start + 1);
  if (end < 0) return undefined;
  const ranges: [string, string][] = [];
  for (let at = start; at < end; at++) {
    const first = pattern[at] ?? "";
    const isRange = pattern[at + 1] === "-" && at + 2 < end;
    ranges.push([first, isRange ? (pattern[at + 2] ?? "") : first]);
    if (isRange) at += 2;
  }
  return { one: (char) => ranges.some(([low, high]) => low <= char && char <= high) !== isNot, end };
}

function tokens(pattern: string): Token[] {
  const found: Token[] = [];
  const literal = (char: string) => found.push({ one: (other) => other === char });
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at] ?? "";
    const set = char === "[" ? characters(pattern, at + 1) : undefined;
    if (set) {
      found.push(set);
      at = set.end;
    } else if (char === "*") {
      if (found.at(-1) !== "any") found.push("any");
    } else if (char === "?") found.push({ one: () => true });
    else if (char === "\\" && at + 1 < pattern.length) literal(pattern[++at] ?? "");
    else literal(char);
  }
  return found;
}

/** Goes back to the last `*` only, so that no pattern takes longer than its length times that of the value. */
function matches(wanted: readonly Token[], value: string): boolean {
  let [token, at, star, mark] = [0, 0, -1, 0];
  while (at < value.length) {
    const next = wanted[token];
    if (next === "any") [star, mark] = [token++, at];
    else if (next?.one(value[at] ?? "")) [token, at] = [token + 1, at + 1];
    else if (star >= 0) [token, at] = [star + 1, ++mark];
    else return false;
  }
  return wanted.slice(token).every((rest) => rest === "any");
}

const known = new Map<string, (value: string) => boolean>();

function matcher(pattern: string): (value: string) => boolean {
  if (!/[*?[{\\]/.test(pattern)) return () => false;
  const all = (alternatives(pattern) ?? []).map(tokens);
  return (value) => all.some((wanted) => matches(wanted, value));
}

/** Whether the pattern is this text, or stands for it. */
export function fits(pattern: string, value: string): boolean {
  if (pattern === value) return true;
  let found = known.get(pattern);
  if (!found) {
    if (known.size >= MOST_KNOWN) known.clear();
    found = matcher(pattern);
    known.set(pattern, found);
  }
  return found(value);
}
