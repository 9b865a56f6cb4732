// Keeps a stream open: reconnects with growing pauses, and tells how the connection is.

import { useEffect, useState } from "react";
import { ApiError } from "./client";

export type Connection = "connecting" | "live" | "lost";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;

export type Open = (signal: AbortSignal, opened: () => void) => Promise<void>;

/** Runs `open` again and again until the signal is aborted or the answer cannot become another one. */
export async function keepOpen(open: Open, signal: AbortSignal, tell: (state: Connection, error?: ApiError) => void) {
  let pause = FIRST_PAUSE;
  while (!signal.aborted) {
    try {
      await open(signal, () => {
        pause = FIRST_PAUSE;
        tell("live");
      });
      if (!signal.aborted) tell("lost");
    } catch (e) {
      if (signal.aborted) return;
      const error = e instanceof ApiError ? e : new ApiError(0, e instanceof Error ? e.message : String(e));
      tell("lost", error);
      // No session or no such thing: asking again changes nothing.
      if ([401, 403, 404].includes(error.status)) return;
    }
    await sleep(pause, signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });
}

/** Holds a stream open while the component is there. `key` names what is streamed. */
export function useStream(key: string, open: Open): { connection: Connection; error: ApiError | undefined } {
  const [state, setState] = useState<{ connection: Connection; error: ApiError | undefined }>({ connection: "connecting", error: undefined });
  useEffect(() => {
    const stop = new AbortController();
    setState({ connection: "connecting", error: undefined });
    void keepOpen(open, stop.signal, (connection, error) => setState({ connection, error }));
    return () => stop.abort();
    // `open` is made anew on every draw; `key` says when it means something else.
  }, [key]);
  return state;
}
