// ApplicationSets: all of them, and one with its Applications, its conditions, its events, and what it generates now.

import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { AppName } from "../api/client";
import { type Open, useStream } from "../api/live";
import { setChanges, type Tell } from "../api/set-changes";
import { setFollower } from "../api/set-follower";
import { type ApplicationSet, sets } from "../api/sets";
import type { Application } from "../api/types";
import { useAsked } from "../asked";
import { useNow, useTitle } from "../hooks";
import { healthOf, syncOf } from "../model/applications";
import { differences, errorOf, isOwned, toneOfCondition } from "../model/sets";
import { ago, exact } from "../model/time";
import { toYaml } from "../model/yaml";
import { Copy } from "../parts/copy";
import { EventList } from "../parts/events";
import { DeleteSet, SetDialog } from "../parts/set-dialog";
import { PlanList, summary } from "../parts/set-plan";
import { Empty, Failure, LiveDot, useToast } from "../parts/shell";
import { Badge } from "../parts/status";
import { Table } from "../parts/table";
import { Tabs } from "../parts/tabs";
import { applicationPath, Link, navigate, setPath, setQuery, useQuery } from "../router";

/** Tells of every change of a set, and of its end. */
function useChanges({ name, namespace }: AppName, { begins, changed, gone }: Tell, loaded: boolean) {
  const open = useMemo(() => setChanges({ name, namespace }, { begins, changed, gone }), [name, namespace, begins, changed, gone]);
  return useLive(`applicationset ${namespace}/${name}`, open, loaded);
}

/** Back in the list, with the reason: the page of what is deleted has nothing to show. */
function useGone(name: string) {
  const toast = useToast();
  return useCallback(() => {
    toast(`The ApplicationSet ${name} was deleted`);
    navigate("/applicationsets", true);
  }, [name, toast]);
}

/** A stream of sets answers only when there is something to say. */
function useLive(key: string, open: Open, loaded: boolean) {
  const { connection, error } = useStream(key, open);
  return { connection: connection === "connecting" && loaded ? ("live" as const) : connection, error };
}

const generatorsOf = (set: ApplicationSet) => (set.spec.generators ?? []).map((generator) => Object.keys(generator).find((key) => key !== "selector") ?? "?").join(", ");

export function SetsPage() {
  useTitle("ApplicationSets");
  const [all, setAll] = useState<ApplicationSet[]>();
  const [creating, setCreating] = useState(false);
  const open = useMemo(() => setFollower(setAll), []);
  const { connection, error } = useLive("applicationsets", open, all !== undefined);
  const rows = all?.map((set) => {
    const { name, namespace } = set.metadata;
    const wrong = errorOf(set);
    return {
      key: `${namespace}/${name}`,
      cells: [
        <Link key="name" to={setPath({ name, namespace: namespace ?? "" })}>
          {name}
        </Link>,
        <Badge key="health" word={set.status?.health?.status} title={set.status?.health?.message} />,
        set.status?.resourcesCount ?? 0,
        generatorsOf(set),
        set.spec.template?.spec?.project,
        wrong ? (
          <span key="wrong" className="wrong">
            {wrong}
          </span>
        ) : (
          <span key="wrong" className="dim">
            none
          </span>
        ),
      ],
    };
  });
  return (
    <div className="page">
      <div className="page-head">
        <h1>ApplicationSets</h1>
        {rows && <span className="total">{rows.length}</span>}
        <span className="grow" />
        <LiveDot connection={connection} error={error} />
        <button type="button" className="primary" onClick={() => setCreating(true)}>
          New ApplicationSet…
        </button>
      </div>
      {creating && <SetDialog onClose={() => setCreating(false)} />}
      {!rows && error && <Failure error={error} what="The ApplicationSets cannot be listed." />}
      {!rows && !error && <div className="skeleton" role="status" aria-label="Loading" />}
      {rows?.length === 0 && (
        <Empty title="No ApplicationSets yet">
          <p className="dim">
            <em>New ApplicationSet…</em> makes one, or <code>tiphys appset create</code>, or Git.
          </p>
        </Empty>
      )}
      {rows && rows.length > 0 && <Table title="ApplicationSets" heads={["Name", "Health", "Applications", "Generators", "Project", "Error"]} rows={rows} />}
    </div>
  );
}

const TABS = { applications: "Applications", plan: "What it generates", conditions: "Conditions", events: "Events", manifest: "Manifest" };
type Tab = keyof typeof TABS;

export function SetPage({ id }: { id: AppName }) {
  useTitle(id.name);
  const { name, namespace } = id;
  // One that is being deleted may be gone at any moment: only its Applications are asked for then.
  const deleting = useRef<ApplicationSet>(undefined);
  const begins = useCallback(() => (deleting.current = undefined), []);
  const ask = useCallback(
    async (signal: AbortSignal) => {
      const [set, apps] = await Promise.all([deleting.current ?? sets.one({ name, namespace }, signal), sets.applications({ name, namespace }, signal)]);
      const all = apps.filter((app) => (app.metadata.namespace ?? "") === (set.metadata.namespace ?? ""));
      if (set.metadata.deletionTimestamp) deleting.current = set;
      return { set, all };
    },
    [name, namespace],
  );
  const { value, error, again } = useAsked(ask);
  const leave = useGone(name);
  const [isGone, setGone] = useState(false);
  const gone = useCallback(() => setGone(true), []);
  const { connection, error: lost } = useChanges(id, { begins, changed: again, gone }, value !== undefined);
  // It was deleted while it was asked for.
  const isLost = value !== undefined && error?.status === 404;
  const [asking, setAsking] = useState<"edit" | "delete">();
  // What somebody is entering stays until it is closed.
  const leaves = (isLost || isGone) && asking === undefined;
  useEffect(() => {
    if (leaves) leave();
  }, [leaves, leave]);
  const now = useNow();
  const wanted = useQuery("view");
  if (leaves) return null;
  if (error?.status === 404 && !isLost)
    return (
      <Empty title={`There is no ApplicationSet ${name}`}>
        <Link to="/applicationsets">All ApplicationSets</Link>
      </Empty>
    );
  if (!value) return <div className="page">{error ? <Failure error={error} what="The ApplicationSet cannot be read." /> : <div className="skeleton" role="status" aria-label="Loading" />}</div>;
  const { set, all } = value;
  const tabs = Object.entries(TABS) as [Tab, string][];
  const shown = tabs.find(([tab]) => tab === wanted)?.[0] ?? "applications";
  const wrong = errorOf(set);
  return (
    <div className="page">
      <nav aria-label="Where you are" className="way">
        <Link to="/applicationsets">← ApplicationSets</Link>
      </nav>
      <div className="page-head">
        <h1>{name}</h1>
        <LiveDot connection={connection} error={lost} />
        <Badge word={set.status?.health?.status} title={set.status?.health?.message} />
        {set.metadata.deletionTimestamp && <span className="badge tone-bad">Deleting</span>}
        <span className="dim">
          {generatorsOf(set)}
          {set.spec.syncPolicy?.applicationsSync && ` · ${set.spec.syncPolicy.applicationsSync}`}
        </span>
        <span className="grow" />
        <button type="button" onClick={() => setAsking("delete")}>
          Delete…
        </button>
        <button type="button" className="primary" onClick={() => setAsking("edit")}>
          Edit…
        </button>
      </div>
      {asking === "edit" && <SetDialog set={set} onClose={() => (setAsking(undefined), again())} />}
      {asking === "delete" && <DeleteSet set={set} owned={all.filter((app) => isOwned(app, set)).length} onClose={() => setAsking(undefined)} />}
      {isGone && <div className="notice tone-bad" role="alert">It was deleted.</div>}
      {error && <Failure error={error} what="What is shown may be old." />}
      {wrong && (
        <div className="notice tone-bad" role="alert">
          <strong>It does not generate what it should.</strong>
          <span>{wrong}</span>
        </div>
      )}
      <section className="operation" aria-label="Details">
        <Tabs label="Details" className="details-body" tabs={tabs} chosen={shown} choose={(view) => setQuery({ view: view === "applications" ? "" : view })}>
          {shown === "applications" && <Applications set={set} all={all} />}
          {shown === "plan" && <Generated set={set} all={all} />}
          {shown === "conditions" && <Conditions set={set} now={now} />}
          {shown === "events" && <Events id={id} now={now} changed={set.metadata.resourceVersion ?? ""} />}
          {shown === "manifest" && <Manifest set={set} />}
        </Tabs>
      </section>
    </div>
  );
}

function Applications({ set, all }: { set: ApplicationSet; all: Application[] }) {
  const steps = new Map((set.status?.applicationStatus ?? []).map((status) => [status.application, status]));
  const owned = all.filter((app) => isOwned(app, set));
  if (owned.length === 0) return <p className="dim">It has no Applications.</p>;
  const rows = owned.map((app) => {
    const { name, namespace } = app.metadata;
    const step = steps.get(name);
    const cells = [
      <Link key="name" to={applicationPath({ name, namespace: namespace ?? "" })}>
        {name}
      </Link>,
      <Badge key="sync" word={syncOf(app)} />,
      <Badge key="health" word={healthOf(app)} title={app.status?.health?.message} />,
      app.spec.destination?.namespace,
    ];
    if (steps.size > 0) cells.push(step && `${step.step ? `step ${step.step}: ` : ""}${step.status ?? ""}${step.message ? `. ${step.message}` : ""}`);
    return { key: name, cells };
  });
  return <Table title="Applications" heads={["Name", "Sync", "Health", "Namespace", ...(steps.size > 0 ? ["Rollout"] : [])]} rows={rows} />;
}

/** The generators may ask Git and others: only when somebody looks, and when the set itself has changed. */
function Generated({ set, all }: { set: ApplicationSet; all: Application[] }) {
  const text = JSON.stringify([set.metadata.name, set.spec]);
  const asked = useAsked(useCallback((signal: AbortSignal) => sets.generate(set, signal), [text]));
  const found = useMemo(() => asked.value && differences(set, asked.value, all), [asked.value, set, all]);
  const jq = set.spec.ignoreApplicationDifferences?.some(({ jqPathExpressions }) => jqPathExpressions?.length);
  if (asked.error) return <Failure error={asked.error} what="It cannot generate." />;
  if (!found) return <p className="dim">Loading…</p>;
  return (
    <>
      <div className="tools">
        <button type="button" disabled={asked.busy} onClick={asked.again}>
          Generate again
        </button>
        <span className="dim" role="status">
          {summary(found)}
        </span>
      </div>
      {jq && <p className="dim">What it ignores by jq expressions is shown as a difference here.</p>}
      <PlanList found={found} label="What it generates" />
    </>
  );
}

function Conditions({ set, now }: { set: ApplicationSet; now: number }) {
  const all = set.status?.conditions ?? [];
  if (all.length === 0) return <p className="dim">There are none yet.</p>;
  const rows = all.map((condition) => ({
    key: condition.type,
    cells: [
      <span key="type" className={`badge tone-${toneOfCondition(condition)}`}>
        {condition.type} {condition.status}
      </span>,
      condition.reason,
      condition.message,
      <span key="time" title={exact(condition.lastTransitionTime)}>
        {ago(condition.lastTransitionTime, now)}
      </span>,
    ],
  }));
  return <Table title="Conditions" heads={["Condition", "Reason", "Message", "Since"]} rows={rows} />;
}

function Events({ id, now, changed }: { id: AppName; now: number; changed: string }) {
  const { name, namespace } = id;
  return <EventList ask={useCallback((signal: AbortSignal) => sets.events({ name, namespace }, signal), [name, namespace, changed])} now={now} />;
}

function Manifest({ set }: { set: ApplicationSet }) {
  const { name, namespace, labels, annotations } = set.metadata;
  const metadata = Object.fromEntries(Object.entries({ name, namespace, labels, annotations }).filter(([, value]) => value));
  const text = toYaml({ apiVersion: "argoproj.io/v1alpha1", kind: "ApplicationSet", metadata, spec: set.spec });
  return (
    <>
      <div className="tools">
        <Copy text={text} />
      </div>
      <pre className="code" tabIndex={0} aria-label="Manifest of the ApplicationSet">
        {text}
      </pre>
    </>
  );
}
