// A long list of which only the part near the screen is drawn. Rows may have any height.

import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";

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
  /** Draws an element with the role `listitem`, at this position of the whole list. */
  row: (item: T, position: number) => ReactNode;
}

export function Chunks<T>({ title, className = "", items, row }: Props<T>) {
  const starts = Array.from({ length: Math.ceil(items.length / CHUNK) }, (_, n) => n * CHUNK);
  return (
    <div role="list" className={`chunks ${className}`} aria-label={title}>
      {starts.map((from) => {
        const part = items.slice(from, from + CHUNK);
        return (
          <Chunk key={from} first={from === 0} rows={part.length}>
            {() => part.map((item, n) => row(item, from + n + 1))}
          </Chunk>
        );
      })}
    </div>
  );
}

function Chunk({ first, rows, children }: { first: boolean; rows: number; children: () => ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  const height = useRef(0);
  const [near, setNear] = useState(first);
  // What has the focus must not vanish under the keyboard.
  const [focused, setFocused] = useState(false);
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
    <div ref={box} role="none" className="chunk" style={drawn ? undefined : { height: rows * (height.current || ROW) }} onFocus={() => setFocused(true)} onBlur={() => setFocused(false)}>
      {drawn && children()}
    </div>
  );
}
