// The answer of the server to a question.

import { useCallback, useEffect, useState } from "react";
import { ApiError } from "./api/client";

export interface Asked<T> {
  value: T | undefined;
  error: ApiError | undefined;
  busy: boolean;
}

const asError = (e: unknown) => (e instanceof ApiError ? e : new ApiError(0, String(e)));

/** The answer to a question, asked again when the question changes. The last answer stays until the next one. */
export function useAsked<T>(ask: (signal: AbortSignal) => Promise<T>, delay = 0): Asked<T> & { again: () => void } {
  const [state, setState] = useState<Asked<T>>({ value: undefined, error: undefined, busy: true });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    setState((now) => ({ ...now, busy: true }));
    const timer = setTimeout(() => {
      ask(control.signal).then(
        (value) => !control.signal.aborted && setState({ value, error: undefined, busy: false }),
        (e: unknown) => !control.signal.aborted && setState((now) => ({ ...now, error: asError(e), busy: false })),
      );
    }, delay);
    return () => (clearTimeout(timer), control.abort());
  }, [ask, delay, round]);
  const again = useCallback(() => setRound((n) => n + 1), []);
  return { ...state, again };
}
