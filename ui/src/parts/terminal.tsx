// A shell in a container. It is loaded when somebody opens one: the library is larger than the rest of the page.

import { FitAddon } from "@xterm/addon-fit";
import { Terminal as Screen } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef, useState } from "react";
import { openTerminal } from "../api/terminal";
import type { Application, ResourceRef } from "../api/types";
import { useToast } from "./shell";

interface Props {
  of: Application;
  pod: ResourceRef;
  /** Those that run. */
  containers: string[];
}

type State = { name: "opening" | "open" } | { name: "closed"; why: string };

/** A server that always wants another connection gets no more than these at once. */
const MOST_AGAIN = 3;

export default function Terminal({ of, pod, containers }: Props) {
  const { name, namespace = "" } = of.metadata;
  const project = of.spec.project ?? "";
  const box = useRef<HTMLDivElement>(null);
  const again = useRef<HTMLButtonElement>(null);
  const screen = useRef<Screen>(null);
  const repeated = useRef(0);
  const toast = useToast();
  const [container, setContainer] = useState(containers[0] ?? "");
  const [state, setState] = useState<State>({ name: "opening" });
  const [round, setRound] = useState(0);
  const [reader, setReader] = useState(false);

  // It stays with its container: another one that runs must not take its place unseen.
  useEffect(() => setContainer((now) => now || (containers[0] ?? "")), [containers[0]]);

  useEffect(() => {
    if (!box.current || !container) return;
    const shown = new Screen({ cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches, fontSize: 13, scrollback: 5000, theme: { background: "#10181f" } });
    const fit = new FitAddon();
    screen.current = shown;
    shown.loadAddon(fit);
    shown.open(box.current);
    fit.fit();
    setState({ name: "opening" });
    const connection = openTerminal(
      { app: { name, namespace }, project, namespace: pod.namespace ?? "", pod: pod.name, container },
      {
        open: () => {
          setState({ name: "open" });
          connection.resize(shown.rows, shown.cols);
          shown.focus();
        },
        print: (text) => {
          repeated.current = 0;
          shown.write(text);
        },
        closed: (why, wanted) => {
          if (wanted && repeated.current++ < MOST_AGAIN) setRound((n) => n + 1);
          else setState({ name: "closed", why });
        },
      },
    );
    shown.onData((data) => connection.type(data, shown.rows, shown.cols));
    shown.onResize(({ rows, cols }) => connection.resize(rows, cols));
    shown.attachCustomKeyEventHandler((e) => {
      if (e.type !== "keydown") return true;
      // All other keys are the shell's: this one leads out.
      if (e.key === "F6") return again.current?.focus(), false;
      if (e.ctrlKey && e.shiftKey && e.code === "KeyC" && shown.hasSelection()) {
        e.preventDefault();
        void copy(shown.getSelection());
        return false;
      }
      return true;
    });
    const watch = new ResizeObserver(() => fit.fit());
    watch.observe(box.current);
    return () => {
      watch.disconnect();
      connection.close();
      shown.dispose();
    };
    // Objects are made anew on every draw; these say when they mean something else.
  }, [name, namespace, project, pod.namespace, pod.name, container, round]);

  useEffect(() => {
    if (screen.current) screen.current.options.screenReaderMode = reader;
  }, [reader, container, round]);

  // There is no clipboard on pages that came over plain HTTP from another host.
  const copy = async (text: string) => {
    try {
      await navigator.clipboard.writeText(text);
      toast("Copied");
    } catch (e) {
      toast(`The browser does not let the page copy: ${e instanceof Error ? e.message : String(e)}`, true);
    }
  };
  if (!container) return <p className="dim">No container of this Pod runs.</p>;
  return (
    <>
      <div className="tools">
        {containers.length > 1 && (
          <select aria-label="Container" value={container} onChange={(e) => setContainer(e.target.value)}>
            {containers.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        )}
        <button type="button" className="small" ref={again} onClick={() => ((repeated.current = 0), setRound(round + 1))}>
          Reconnect
        </button>
        <button type="button" className="small" onClick={() => void copy(screen.current?.getSelection() ?? "")}>
          Copy the selection
        </button>
        <label className="inline">
          <input type="checkbox" checked={reader} onChange={(e) => setReader(e.target.checked)} /> Screen reader
        </label>
      </div>
      {/* Escape is the shell's, not the panel's. */}
      <div className="terminal" ref={box} role="group" aria-label={`Terminal in ${container}`} onKeyDown={(e) => e.stopPropagation()} />
      <p className="dim" role="status">
        {state.name === "opening" && "Connecting…"}
        {state.name === "open" && "Connected. F6 leads out of the terminal; Ctrl+Shift+C copies, Ctrl+Shift+V pastes."}
        {state.name === "closed" && !state.why && "The connection is closed."}
      </p>
      {state.name === "closed" && state.why && (
        <div className="notice tone-bad" role="alert">
          <strong>There is no terminal.</strong>
          <span>{state.why}</span>
        </div>
      )}
    </>
  );
}
