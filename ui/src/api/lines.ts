// Reads server-sent events from pieces of text as they arrive. Knows nothing of the network.

/** One event is at most this long; a server that sends more is not ours. */
const MAX_EVENT = 64 * 1024 * 1024;

/** What a stream of the API carries: a result, or the error that ended it. */
export type Message<T> = { result: T } | { error: { message?: string; http_code?: number } };

/** Feed it text; it gives back the data of every event that is complete. */
export class EventParser {
  private rest = "";
  private data: string[] = [];
  private size = 0;

  push(text: string): string[] {
    const events: string[] = [];
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    this.check(this.rest.length);
    for (const line of lines) {
      if (line === "") {
        if (this.data.length > 0) events.push(this.data.join("\n"));
        this.data = [];
        this.size = 0;
      } else if (line.startsWith("data:")) {
        const value = line.slice(line.startsWith("data: ") ? 6 : 5);
        this.size += value.length;
        this.check(this.size);
        this.data.push(value);
      }
      // Comments (heartbeats) and other fields carry nothing for us.
    }
    return events;
  }

  private check(length: number) {
    if (length > MAX_EVENT) throw new Error("the server sent an event that is too long");
  }
}
