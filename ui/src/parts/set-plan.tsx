// What an ApplicationSet generates beside what exists: which Applications come, change and go.

import type { Difference } from "../model/sets";
import { DiffView, Unfold } from "./diff";

const TONES: Record<Difference["effect"], string> = { create: "good", change: "warn", delete: "bad", keep: "off", same: "off" };

export function PlanList({ found, label }: { found: Difference[]; label: string }) {
  return (
    <ul className="results plan-list" aria-label={label}>
      {found.map((difference) => (
        <li key={difference.name} data-effect={difference.effect}>
          <span className={`badge tone-${TONES[difference.effect]}`}>{difference.effect === "same" ? "unchanged" : difference.effect}</span>
          <Unfold
            head={
              <>
                {difference.name} {difference.why && <span className="dim">{difference.why}</span>}
              </>
            }
          >
            {() => <DiffView before={difference.before} after={difference.after} from="now" to="generated" same="It is what the set generates." />}
          </Unfold>
        </li>
      ))}
    </ul>
  );
}

export const summary = (found: Difference[]) => `${found.filter(({ effect }) => !["same", "keep"].includes(effect)).length} of ${found.length} Applications would change`;
