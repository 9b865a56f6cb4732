// The words of a terminal's connection: what is typed goes out, what is printed comes in.

import type { AppName } from "../api/client";

export interface TerminalOf {
  /** With its namespace, whichever it is: the server asks for it here. */
  app: AppName;
  project: string;
  namespace: string;
  pod: string;
  container: string;
}

export const typed = (data: string, rows: number, cols: number) => JSON.stringify({ operation: "stdin", data, rows, cols });
export const resized = (rows: number, cols: number) => JSON.stringify({ operation: "resize", rows, cols });

/** Text to print, or that the server wants another connection, with the session of then. */
export type Message = { print: string } | "reconnect" | undefined;

export function messageOf(text: unknown): Message {
  if (typeof text !== "string") return undefined;
  try {
    const message = JSON.parse(text) as { operation?: string; data?: string; Code?: number } | null;
    if (message?.Code === 1) return "reconnect";
    return message?.operation === "stdout" ? { print: message.data ?? "" } : undefined;
  } catch {
    return undefined;
  }
}

export function terminalQuery({ app, project, namespace, pod, container }: TerminalOf): string {
  return new URLSearchParams({ pod, container, appName: app.name, appNamespace: app.namespace, projectName: project, namespace }).toString();
}

interface PodStatus {
  status?: Record<"containerStatuses" | "initContainerStatuses", { name: string; state?: { running?: object } }[] | undefined>;
}

/** The containers of a Pod in which a shell can be started now. `json` is its manifest. */
export function runningContainers(json: string): string[] {
  try {
    const { status } = JSON.parse(json) as PodStatus;
    const all = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
    return all.filter(({ state }) => state?.running).map(({ name }) => name);
  } catch {
    return [];
  }
}
