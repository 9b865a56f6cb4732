// One chart: its README, versions, values and schema.

import { useCallback, useState } from "react";
import { useTitle } from "../hooks";
import { safeUrl } from "../model/url";
import { Failure } from "../parts/shell";
import { Tabs } from "../parts/tabs";
import { type ChartName, Link } from "../router";
import { catalog, type ChartDetails, type ChartProblem } from "./api";
import { useAsked } from "../asked";
import { InstallDialog } from "./install";
import { Icon, Markdown } from "./parts";

const TABS = ["README", "Values", "Schema", "Versions"] as const;
type Tab = (typeof TABS)[number];

export function ChartPage({ name }: { name: ChartName }) {
  useTitle(name.path);
  const [version, setVersion] = useState("");
  const [tab, setTab] = useState<Tab>("README");
  const [installing, setInstalling] = useState(false);
  const { namespace, repository, path } = name;
  const asked = useAsked(
    useCallback((signal: AbortSignal) => catalog.chart({ namespace, repository, path }, version, signal), [namespace, repository, path, version]),
  );
  const details = asked.value;
  return (
    <div className="page">
      <p>
        <Link to="/catalog">Catalogue</Link>
      </p>
      {asked.error && <Failure error={asked.error} what="The chart cannot be shown." />}
      {details && (
        <>
          <Head details={details} version={version} choose={setVersion} onInstall={() => setInstalling(true)} />
          {details.missing && (
            <div className="notice tone-warn">
              <strong>There are no files of this version.</strong>
              <span>{details.missing}</span>
            </div>
          )}
          <Problems problems={details.problems} version={details.shown.version} />
          <Tabs label="Chart" className="chart-panel" tabs={TABS.map((tab) => [tab, tab])} chosen={tab} choose={setTab}>
            <Content details={details} tab={tab} choose={setVersion} />
          </Tabs>
          {installing && <InstallDialog chart={name} details={details} onClose={() => setInstalling(false)} />}
        </>
      )}
    </div>
  );
}

/** What is wrong with the version that is shown, or with the chart as a whole. */
function Problems(p: { problems?: ChartProblem[]; version: string }) {
  const mine = (p.problems ?? []).filter((problem) => !problem.version || problem.version === p.version);
  if (mine.length === 0) return null;
  return (
    <div className="notice tone-warn" data-problems>
      <strong>Something is wrong with this chart.</strong>
      {mine.map((problem) => (
        <span key={`${problem.kind}/${problem.version ?? ""}`}>{problem.reason}</span>
      ))}
    </div>
  );
}

function Head(p: { details: ChartDetails; version: string; choose: (version: string) => void; onInstall: () => void }) {
  const { chart, versions, home, maintainers, repoUrl } = p.details;
  const link = safeUrl(home);
  return (
    <div className="chart-head">
      <Icon icon={chart.icon} name={chart.name} />
      <div>
        <h1>{chart.name}</h1>
        <p>{chart.description}</p>
        <p className="dim">
          {chart.namespace}/{chart.repository} {repoUrl}
          {(maintainers ?? []).length > 0 && ` · ${maintainers?.join(", ")}`}
          {link && (
            <>
              {" · "}
              <a href={link} target="_blank" rel="noreferrer nofollow">
                Home
              </a>
            </>
          )}
        </p>
      </div>
      <span className="grow" />
      <label>
        Version
        <select value={p.details.shown.version} onChange={(e) => p.choose(e.target.value)}>
          {(versions ?? []).map((v) => (
            <option key={v.version}>{v.version}</option>
          ))}
        </select>
      </label>
      <button type="button" className="primary" onClick={p.onInstall}>
        Install…
      </button>
    </div>
  );
}

function Content({ details, tab, choose }: { details: ChartDetails; tab: Tab; choose: (version: string) => void }) {
  switch (tab) {
    case "README":
      return details.readme ? <Markdown text={details.readme} /> : <p className="dim">There is no README.</p>;
    case "Values":
      return (
        <>
          <pre tabIndex={0}>{details.values || "# none"}</pre>
          {(details.additionalValues ?? []).map((file) => (
            <details key={file.name}>
              <summary>{file.name}.yaml</summary>
              <pre tabIndex={0}>{file.content}</pre>
            </details>
          ))}
        </>
      );
    case "Schema":
      return details.schema ? <pre tabIndex={0}>{details.schema}</pre> : <p className="dim">There is no schema.</p>;
    case "Versions":
      return (
        <table>
          <thead>
            <tr>
              <th scope="col">Version</th>
              <th scope="col">App version</th>
              <th scope="col">Created</th>
              <th scope="col">Digest</th>
            </tr>
          </thead>
          <tbody>
            {(details.versions ?? []).map((v) => (
              <tr key={v.version}>
                <td>
                  <button type="button" className="quiet" aria-pressed={v.version === details.shown.version} onClick={() => choose(v.version)}>
                    {v.version}
                  </button>
                </td>
                <td>{v.appVersion}</td>
                <td>{v.created?.startsWith("0001") ? "" : v.created?.slice(0, 10)}</td>
                <td>
                  <code>{v.digest?.replace("sha256:", "").slice(0, 12)}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      );
  }
}
