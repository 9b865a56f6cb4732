// The differences of two texts, line by line.

import { type ReactNode, useState } from "react";
import { keep, useKept } from "../kept";
import { type DiffLine, diffLines, fold, pairs } from "../model/diff";

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
  const split = useKept("diff") === "split";
  const hunks = fold(diffLines(before, after));
  if (!hunks.some((h) => "lines" in h)) return <p className="dim">{same}</p>;
  const flip = () => keep("diff", split ? "" : "split");
  return (
    <>
      <div className="legend">
        <span className="removed">− {from}</span> <span className="added">+ {to}</span>
        <button type="button" className="small" aria-pressed={split} onClick={flip}>
          Side by side
        </button>
      </div>
      <div className={`code diff${split ? " split" : ""}`} tabIndex={0} role="group" aria-label="Differences">
        {hunks.map((hunk, i) =>
          "folded" in hunk ? (
            <div key={i} className="folded">
              {hunk.folded} unchanged line{hunk.folded === 1 ? "" : "s"}
            </div>
          ) : split ? (
            pairs(hunk.lines).map((pair, j) => (
              <div key={`${i}.${j}`} className="pair">
                <Side line={pair.old} at={pair.old?.old} />
                <Side line={pair.new} at={pair.new?.new} />
              </div>
            ))
          ) : (
            hunk.lines.map((line, j) => (
              <div key={`${i}.${j}`} className={line.kind}>
                <span className="sign">{SIGNS[line.kind]}</span>
                {line.text}
              </div>
            ))
          ),
        )}
      </div>
    </>
  );
}

const SIGNS = { same: " ", added: "+", removed: "−" };

function Side({ line, at }: { line: DiffLine | undefined; at: number | undefined }) {
  if (!line) return <span className="side side-none" />;
  return (
    <span className={`side ${line.kind}`}>
      <span className="sign">{SIGNS[line.kind]}</span>
      <span className="line-number">{at}</span>
      <span>{line.text}</span>
    </span>
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
