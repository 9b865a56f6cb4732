// A terminal's connection. A WebSocket does not say why it was refused; the same address without one does.

import { messageOf, resized, type TerminalOf, terminalQuery, typed } from "../model/terminal";
import { ROOT } from "../root";

export interface Told {
  open: () => void;
  print: (text: string) => void;
  /** Over: the shell has ended, or was refused with these words. `again`: the server wants another connection. */
  closed: (why: string, again: boolean) => void;
}

export interface Terminal {
  type: (data: string, rows: number, cols: number) => void;
  resize: (rows: number, cols: number) => void;
  close: () => void;
}

const path = (of: TerminalOf) => `${ROOT}/terminal?${terminalQuery(of)}`;

const NO_UPGRADE = "If this is not about the Pod, the connection could not be upgraded: a proxy on the way must let WebSockets pass.";

/** A request that may have a terminal is a bad one without an upgrade, as is one for a Pod that is gone: the status does not tell them apart. */
async function whyRefused(of: TerminalOf): Promise<string> {
  try {
    const response = await fetch(path(of), { credentials: "same-origin" });
    const text = (await response.text()).slice(0, 500).trim();
    const why = text || `HTTP ${response.status}`;
    return response.status === 400 ? `${why}. ${NO_UPGRADE}` : why;
  } catch {
    return "The server does not answer.";
  }
}

export function openTerminal(of: TerminalOf, told: Told, Socket: typeof WebSocket = WebSocket): Terminal {
  const socket = new Socket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path(of)}`);
  let [wasOpen, isOver, isClosed, again] = [false, false, false, false];
  socket.onopen = () => {
    wasOpen = true;
    told.open();
  };
  socket.onmessage = ({ data }) => {
    const message = messageOf(data);
    if (message === "reconnect") again = true;
    else if (message) told.print(message.print);
  };
  socket.onclose = () => {
    if (isOver || isClosed) return;
    isOver = true;
    if (wasOpen) told.closed("", again);
    // It may be closed here before the server has answered.
    else void whyRefused(of).then((why) => isClosed || told.closed(why, false));
  };
  const send = (text: string) => socket.readyState === Socket.OPEN && socket.send(text);
  return {
    type: (data, rows, cols) => send(typed(data, rows, cols)),
    resize: (rows, cols) => send(resized(rows, cols)),
    close: () => {
      isClosed = true;
      socket.close();
    },
  };
}
