// The same for many Applications: a few calls at a time, and what became of each.

export interface Progress<T> {
  done: number;
  failed: { item: T; why: string }[];
}

/** A server that is asked for everything at once has no time for others. */
const PARALLEL = 4;

/** Goes on when one of them fails. After the signal no further call is made; those that run are waited for. */
export async function forEach<T>(items: readonly T[], act: (item: T) => Promise<unknown>, signal: AbortSignal, tell: (progress: Progress<T>) => void): Promise<Progress<T>> {
  const failed: Progress<T>["failed"] = [];
  let next = 0;
  let done = 0;
  const worker = async () => {
    while (next < items.length && !signal.aborted) {
      const item = items[next++] as T;
      try {
        await act(item);
      } catch (e) {
        failed.push({ item, why: e instanceof Error ? e.message : String(e) });
      }
      done++;
      tell({ done, failed: [...failed] });
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  return { done, failed };
}

/** What became of all of them, in words. */
export function outcome({ done, failed }: Progress<unknown>, total: number, stopped: boolean): string {
  const refused = failed.length > 0 ? `, ${failed.length} refused` : "";
  const left = stopped && done < total ? `; stopped, ${total - done} were left alone` : "";
  return `${done - failed.length} of ${total} accepted${refused}${left}`;
}
