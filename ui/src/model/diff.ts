// Line differences of two texts (Myers' shortest edit), and the folding of what is equal.

export interface DiffLine {
  kind: "same" | "added" | "removed";
  text: string;
  /** Line numbers, from 1, in the old and the new text. */
  old: number | undefined;
  new: number | undefined;
}

/** More edits than this are shown as one block replaced by another: the search costs the square of it. */
const MAX_EDITS = 1500;

export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [before ? before.split("\n") : [], after ? after.split("\n") : []];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const script = edits(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const kinds = [...Array<"same">(start).fill("same"), ...script, ...Array<"same">(end).fill("same")];
  let [i, j] = [0, 0];
  return kinds.map((kind) => {
    const line: DiffLine = { kind, text: (kind === "added" ? b[j] : a[i]) ?? "", old: undefined, new: undefined };
    if (kind !== "added") line.old = ++i;
    if (kind !== "removed") line.new = ++j;
    return line;
  });
}

function edits(a: string[], b: string[]): DiffLine["kind"][] {
  const replaced = [...a.map(() => "removed" as const), ...b.map(() => "added" as const)];
  if (a.length === 0 || b.length === 0) return replaced;
  const limit = Math.min(a.length + b.length, MAX_EDITS);
  let far = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  for (let d = 0; d <= limit; d++) {
    trace.push(new Map(far));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (far.get(k - 1) ?? -1) < (far.get(k + 1) ?? -1));
      let x = down ? (far.get(k + 1) ?? 0) : (far.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      far.set(k, x);
      if (x >= a.length && x - k >= b.length) return walkBack(trace, a.length, b.length);
    }
  }
  return replaced;
}

function walkBack(trace: Map<number, number>[], x: number, y: number): DiffLine["kind"][] {
  const script: DiffLine["kind"][] = [];
  for (let d = trace.length - 1; d >= 0; d--) {
    const far = trace[d] ?? new Map<number, number>();
    const k = x - y;
    const down = k === -d || (k !== d && (far.get(k - 1) ?? -1) < (far.get(k + 1) ?? -1));
    const from = down ? k + 1 : k - 1;
    const [px, py] = [far.get(from) ?? 0, (far.get(from) ?? 0) - from];
    while (x > Math.max(px, 0) && y > Math.max(py, 0)) {
      script.push("same");
      x--;
      y--;
    }
    if (d > 0) script.push(down ? "added" : "removed");
    [x, y] = [px, py];
  }
  return script.reverse();
}

export type Hunk = { folded: number } | { lines: DiffLine[] };

/** Keeps some lines around every change and folds the rest. */
export function fold(lines: DiffLine[], context = 3): Hunk[] {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, i) => {
    if (line.kind !== "same") near.fill(1, Math.max(0, i - context), i + context + 1);
  });
  const hunks: Hunk[] = [];
  lines.forEach((line, i) => {
    const last = hunks.at(-1);
    if (near[i]) {
      if (last && "lines" in last) last.lines.push(line);
      else hunks.push({ lines: [line] });
    } else if (last && "folded" in last) last.folded++;
    else hunks.push({ folded: 1 });
  });
  return hunks;
}

export interface Pair {
  old: DiffLine | undefined;
  new: DiffLine | undefined;
}

/** Both texts side by side: what is removed stands beside what is added in its place. */
export function pairs(lines: readonly DiffLine[]): Pair[] {
  const found: Pair[] = [];
  let [removed, added]: [DiffLine[], DiffLine[]] = [[], []];
  const flush = () => {
    for (let n = 0; n < Math.max(removed.length, added.length); n++) found.push({ old: removed[n], new: added[n] });
    [removed, added] = [[], []];
  };
  for (const line of lines) {
    if (line.kind === "removed") removed.push(line);
    else if (line.kind === "added") added.push(line);
    else {
      flush();
      found.push({ old: line, new: line });
    }
  }
  flush();
  return found;
}
