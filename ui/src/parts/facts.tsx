// What is known of something, name by name. They stand in a list `dl.facts`.

import type { ReactNode } from "react";

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** One of several lines; nothing at all without any. */
export function Facts({ name, lines }: { name: string; lines: (string | undefined)[] | undefined }) {
  const shown = lines?.filter(Boolean) ?? [];
  if (shown.length === 0) return null;
  return (
    <Fact name={name}>
      {shown.map((line, i) => (
        <div key={i}>{line}</div>
      ))}
    </Fact>
  );
}
