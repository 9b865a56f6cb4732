// The logs of a Pod, or of all Pods of a workload.

import { useDeferredValue, useEffect, useRef, useState } from "react";
import { ApiError, type AppName } from "../api/client";
import { type LogsWanted, logsFile, resources } from "../api/resources";
import type { LogLine, ResourceRef } from "../api/types";
import { logsText, MOST_LINES, withLines } from "../model/logs";
import { useQuery } from "../router";
import { Copy } from "./copy";
import { Failure } from "./shell";

/** Lines that come together are drawn together. */
const GATHER = 100;
const START: LogsWanted = { container: "", previous: false, follow: true, filter: "", matchCase: false, lines: 500, since: 0 };
const SINCE: [number, string][] = [
  [0, "of any time"],
  [60, "of the last minute"],
  [300, "of the last 5 minutes"],
  [1800, "of the last 30 minutes"],
  [3600, "of the last hour"],
  [14_400, "of the last 4 hours"],
  [86_400, "of the last day"],
];
const LINES = [100, 500, 1000, MOST_LINES];

function useLogs(app: AppName, of: ResourceRef, wanted: LogsWanted, round: number) {
  const [lines, setLines] = useState<LogLine[]>([]);
  const [state, setState] = useState<{ name: "opening" | "open" | "ended"; error?: ApiError }>({ name: "opening" });
  useEffect(() => {
    const stop = new AbortController();
    let waiting: LogLine[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      timer = undefined;
      const more = waiting;
      waiting = [];
      setLines((known) => withLines(known, more));
    };
    const message = (line: LogLine) => {
      waiting.push(line);
      timer ??= setTimeout(flush, GATHER);
    };
    const end = (error?: ApiError) => {
      if (stop.signal.aborted) return;
      clearTimeout(timer);
      flush();
      setState(error ? { name: "ended", error } : { name: "ended" });
    };
    setLines([]);
    setState({ name: "opening" });
    resources.logs(app, of, wanted, stop.signal, { open: () => setState({ name: "open" }), message }).then(
      () => end(),
      (e: unknown) => end(e instanceof ApiError ? e : new ApiError(0, String(e))),
    );
    return () => (clearTimeout(timer), stop.abort());
    // Objects are made anew on every draw; these say when they mean something else.
  }, [app.name, app.namespace, of.uid, of.name, wanted, round]);
  return { lines, ...state };
}

export function Logs({ app, of, containers }: { app: AppName; of: ResourceRef; containers: string[] }) {
  // A link may name the container.
  const linked = useQuery("container");
  const [wanted, setWanted] = useState<LogsWanted>({ ...START, container: linked });
  const [filter, setFilter] = useState("");
  const [wrap, setWrap] = useState(false);
  const [times, setTimes] = useState(false);
  const [round, setRound] = useState(0);
  const { lines, name: state, error } = useLogs(app, of, wanted, round);
  const text = logsText(useDeferredValue(lines), times);
  const box = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  // Who has scrolled up reads.
  useEffect(() => {
    if (box.current && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current ?? { scrollTop: 0, scrollHeight: 0, clientHeight: 0 };
    atEnd.current = scrollHeight - scrollTop - clientHeight < 24;
  };
  const check = (title: string, on: boolean, change: (on: boolean) => void) => (
    <label className="inline">
      <input type="checkbox" checked={on} onChange={(e) => change(e.target.checked)} /> {title}
    </label>
  );
  return (
    <div className="logs">
      <div className="tools">
        {containers.length > 1 && (
          <select aria-label="Container" value={wanted.container} onChange={(e) => setWanted({ ...wanted, container: e.target.value })}>
            <option value="">default container</option>
            {(containers.includes(wanted.container) || !wanted.container ? containers : [wanted.container, ...containers]).map((container) => (
              <option key={container}>{container}</option>
            ))}
          </select>
        )}
        <form
          onSubmit={(e) => {
            e.preventDefault();
            setWanted({ ...wanted, filter });
          }}
        >
          <input type="search" aria-label="Only lines with this text" placeholder="Filter, then Enter" value={filter} onChange={(e) => setFilter(e.target.value)} />
        </form>
        <select aria-label="Since when" value={wanted.since} onChange={(e) => setWanted({ ...wanted, since: Number(e.target.value) })}>
          {SINCE.map(([seconds, title]) => (
            <option key={seconds} value={seconds}>
              {title}
            </option>
          ))}
        </select>
        <select aria-label="How many lines" value={wanted.lines} onChange={(e) => setWanted({ ...wanted, lines: Number(e.target.value) })}>
          {LINES.map((lines) => (
            <option key={lines} value={lines}>
              {lines} lines
            </option>
          ))}
        </select>
        {check("Match case", wanted.matchCase, (matchCase) => setWanted({ ...wanted, matchCase }))}
        {check("Follow", wanted.follow, (follow) => setWanted({ ...wanted, follow }))}
        {check("Previous", wanted.previous, (previous) => setWanted({ ...wanted, previous }))}
        {check("Times", times, setTimes)}
        {check("Wrap", wrap, setWrap)}
        <span className="grow" />
        <Copy text={text} />
        <a href={logsFile(app, of, wanted)} download className="small">
          Download
        </a>
      </div>
      {error && <Failure error={error} what="The logs cannot be read." />}
      <pre ref={box} className={`code log-lines${wrap ? " wrap" : ""}`} tabIndex={0} role="log" aria-live="off" aria-label="Logs" onScroll={scrolled}>
        {text}
      </pre>
      <p className="dim" role="status">
        {state === "opening" && (wanted.follow ? "Waiting for lines…" : "Loading…")}
        {state !== "opening" && !error && lines.length === 0 && "There are no lines. "}
        {state === "open" && wanted.follow && "Following."}
        {state === "ended" && (
          <>
            {wanted.follow && "The stream has ended. "}
            <button type="button" className="small" onClick={() => setRound(round + 1)}>
              Read again
            </button>
          </>
        )}
      </p>
    </div>
  );
}
