// What the sync would do, before it is started.

import { useCallback, useMemo } from "react";
import type { AppName } from "../api/client";
import { type PlanWanted, resources } from "../api/resources";
import type { Application } from "../api/types";
import { useAsked } from "../asked";
import { type Effect, planOf, type PlanChoice, type Step, summary } from "../model/plan";
import type { Revision } from "../model/revisions";
import { manifestYaml } from "../model/yaml";
import { DiffView, Unfold } from "./diff";
import { Failure } from "./shell";

const TONES: Record<Effect, string> = { create: "good", change: "warn", prune: "bad", hook: "busy", keep: "off", leave: "off", same: "off" };
const WORDS: Record<Effect, string> = { create: "create", change: "change", prune: "prune", hook: "run", keep: "keep", leave: "leave out", same: "unchanged" };
/** While somebody types a revision. */
const PAUSE = 400;

interface Props {
  app: Application;
  id: AppName;
  /** Empty: the Application's own. */
  revision: Revision;
  choice: Omit<PlanChoice, "namespace">;
}

export function Plan({ app, id, revision, choice }: Props) {
  const { name, namespace } = id;
  const hydrated = app.spec.sourceHydrator !== undefined;
  const { sync } = app.status ?? {};
  // Of several sources, their own revisions are taken for the compared ones unless each has another.
  const compared: Revision = !app.spec.sources?.length ? (sync?.revision ?? "") : typeof revision === "string" ? "" : (sync?.revisions ?? []);
  // A list is made anew on every draw.
  const wanted = JSON.stringify({ revision, compared, hydrated });
  const asked = useAsked(
    useCallback((signal: AbortSignal) => resources.plan({ name, namespace }, JSON.parse(wanted) as PlanWanted, signal), [name, namespace, wanted]),
    revision.length > 0 ? PAUSE : 0,
  );
  const { prune, hooks, syncOptions, left } = choice;
  const target = app.spec.destination?.namespace ?? "";
  const steps = useMemo(
    () => asked.value && planOf(asked.value, { prune, hooks, syncOptions, left, namespace: target }),
    [asked.value, prune, hooks, syncOptions, left, target],
  );
  if (asked.error) return <Failure error={asked.error} what="What it would do is not known." />;
  return (
    <details className="plan" open aria-busy={asked.busy}>
      <summary>What it does: {asked.busy || !steps ? "looking…" : summary(steps)}</summary>
      {hydrated && <p className="dim">Hooks are not shown: the hydrator renders what is synced.</p>}
      {!asked.busy && steps && <Steps steps={steps} />}
    </details>
  );
}

function Steps({ steps }: { steps: Step[] }) {
  const shown = steps.filter((step) => step.effect !== "same");
  const groups = new Map<string, Step[]>();
  for (const step of shown) {
    const title = step.wave === 0 ? step.phase : `${step.phase}, wave ${step.wave}`;
    groups.set(title, [...(groups.get(title) ?? []), step]);
  }
  return (
    <div className="plan-steps" role="group" aria-label="Steps of the sync" tabIndex={0}>
      {[...groups].map(([title, group]) => (
        <section key={title}>
          <h3>{title}</h3>
          {group.map((step) => (
            <Row key={step.key} step={step} />
          ))}
        </section>
      ))}
    </div>
  );
}

function Row({ step }: { step: Step }) {
  const { effect, ref, why, before, after } = step;
  const head = (
    <>
      <span className={`badge tone-${TONES[effect]}`}>{WORDS[effect]}</span>
      <span>
        {ref.kind} {ref.name}
        <small>{[ref.namespace, why].filter(Boolean).join(" · ")}</small>
      </span>
    </>
  );
  if (effect === "keep" || effect === "leave")
    return (
      <div className="plan-step" data-effect={effect}>
        {head}
      </div>
    );
  return (
    <Unfold head={head} className="plan-step" effect={effect}>
      {() => <DiffView before={manifestYaml(before)} after={manifestYaml(after)} from="now" to="then" same="No difference can be shown. Values of Secrets are hidden." />}
    </Unfold>
  );
}
