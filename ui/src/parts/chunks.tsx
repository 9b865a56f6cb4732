// A long list of which only the part near the screen is drawn. Rows may have any height.

import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useKeptFocus } from "./kept-focus";

/** So many rows come and go together: full lines of one to six columns. */
export const CHUNK = 60;
/** Of a row that was never drawn, in pixels. */
const ROW = 64;
/** Drawn before it is seen. */
const NEAR = "1200px 0px";

interface Props<T> {
  title: string;
  className?: string;
  items: readonly T[];
  /** What an item is known by, wherever it is. */
  name: (item: T) => string;
  /** Draws an element with the role `listitem` and with the name in `data-item`, at this position of the whole list. */
  row: (item: T, position: number) => ReactNode;
}

/** Which of the chunks must be drawn for this item; -1: none. */
export function chunkOf<T>(items: readonly T[], name: (item: T) => string, wanted: string | undefined): number {
  const at = wanted === undefined ? -1 : items.findIndex((item) => name(item) === wanted);
  return Math.floor(at / CHUNK);
}

export function Chunks<T>({ title, className = "", items, name, row }: Props<T>) {
  const starts = Array.from({ length: Math.ceil(items.length / CHUNK) }, (_, n) => n * CHUNK);
  const { box, held, on } = useKeptFocus<HTMLDivElement>();
  const focused = chunkOf(items, name, held);
  return (
    <div ref={box} role="list" className={`chunks ${className}`} aria-label={title} {...on}>
      {starts.map((from, at) => {
        const part = items.slice(from, from + CHUNK);
        return (
          <Chunk key={from} first={from === 0} focused={at === focused} rows={part.length}>
            {() => part.map((item, n) => row(item, from + n + 1))}
          </Chunk>
        );
      })}
    </div>
  );
}

interface ChunkProps {
  first: boolean;
  /** It has the item with the focus, which must not vanish under the keyboard. */
  focused: boolean;
  rows: number;
  children: () => ReactNode;
}

function Chunk({ first, focused, rows, children }: ChunkProps) {
  const box = useRef<HTMLDivElement>(null);
  const height = useRef(0);
  const [near, setNear] = useState(first);
  const drawn = near || focused;
  useEffect(() => {
    if (!box.current) return;
    const observer = new IntersectionObserver((seen) => setNear(seen.at(-1)?.isIntersecting ?? false), { rootMargin: NEAR });
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (drawn && box.current) height.current = box.current.offsetHeight / rows;
  });
  return (
    <div ref={box} role="none" className="chunk" style={drawn ? undefined : { height: rows * (height.current || ROW) }}>
      {drawn && children()}
    </div>
  );
}
