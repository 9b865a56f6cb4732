// What is below the tree: the last operation, the parameters, the history, the events and the Application itself.

import type { AppName } from "../api/client";
import type { Application } from "../api/types";
import { manifestOf } from "../model/form";
import { toYaml } from "../model/yaml";
import { setQuery, useQuery } from "../router";
import { Copy } from "./copy";
import { Events } from "./events";
import { History } from "./history";
import { Operation } from "./operation";
import { Parameters } from "./parameters";
import { Tabs } from "./tabs";

const TABS = { operation: "Last operation", parameters: "Parameters", history: "History", events: "Events", manifest: "Manifest" };
type Tab = keyof typeof TABS;

export function Details({ app, id, now }: { app: Application; id: AppName; now: number }) {
  const wanted = useQuery("view");
  const tabs = Object.entries(TABS) as [Tab, string][];
  const shown = tabs.find(([tab]) => tab === wanted)?.[0] ?? "operation";
  return (
    <section className="operation" aria-label="Details">
      <Tabs label="Details" className="details-body" tabs={tabs} chosen={shown} choose={(view) => setQuery({ view: view === "operation" ? "" : view })}>
        {shown === "operation" && <Operation app={app} now={now} />}
        {shown === "parameters" && <Parameters app={app} />}
        {shown === "history" && <History app={app} id={id} now={now} />}
        {shown === "events" && <Events app={id} now={now} changed={app.status?.operationState?.startedAt ?? ""} />}
        {shown === "manifest" && <Manifest app={app} />}
      </Tabs>
    </section>
  );
}

/** What people enter of it, as it is kept in Git. */
function Manifest({ app }: { app: Application }) {
  const text = toYaml(manifestOf(app));
  return (
    <>
      <div className="tools">
        <Copy text={text} />
      </div>
      <pre className="code" tabIndex={0} aria-label="Manifest of the Application">
        {text}
      </pre>
    </>
  );
}
