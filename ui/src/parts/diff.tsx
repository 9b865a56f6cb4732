// The differences of two texts, line by line.

import { type ReactNode, useState } from "react";
import { diffLines, fold } from "../model/diff";

interface Props {
  before: string;
  after: string;
  /** What the old text is. */
  from: string;
  /** What the new text is. */
  to?: string;
  /** Said when nothing differs. */
  same: string;
}

export function DiffView({ before, after, from, to = "desired, from Git", same }: Props) {
  const hunks = fold(diffLines(before, after));
  if (!hunks.some((h) => "lines" in h)) return <p className="dim">{same}</p>;
  return (
    <>
      <p className="legend">
        <span className="removed">− {from}</span> <span className="added">+ {to}</span>
      </p>
      <div className="code diff" tabIndex={0} role="group" aria-label="Differences">
        {hunks.map((hunk, i) =>
          "folded" in hunk ? (
            <div key={i} className="folded">
              {hunk.folded} unchanged line{hunk.folded === 1 ? "" : "s"}
            </div>
          ) : (
            hunk.lines.map((line, j) => (
              <div key={`${i}.${j}`} className={line.kind}>
                <span className="sign">{{ same: " ", added: "+", removed: "−" }[line.kind]}</span>
                {line.text}
              </div>
            ))
          ),
        )}
      </div>
    </>
  );
}

/** Makes what is inside only when it is opened: there may be thousands. */
export function Unfold({ head, className, effect, children }: { head: ReactNode; className?: string; effect?: string; children: () => ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <details data-effect={effect} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary className={className}>{head}</summary>
      {open && children()}
    </details>
  );
}
