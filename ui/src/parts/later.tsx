// Parts of the page that are loaded when somebody opens them.

import { Component, type ComponentType, lazy, type ReactNode, Suspense } from "react";

/** The file of a part is not there: after an update of the server the files have other names. */
export class NotLoaded extends Error {}

/** Any failure to load a part is told apart from failures of the part itself. */
export const loaded = <T,>(load: () => Promise<T>): Promise<T> =>
  load().catch((cause: unknown) => {
    throw new NotLoaded("a part of the page cannot be loaded", { cause });
  });

export const later = <P extends object>(load: () => Promise<{ default: ComponentType<P> }>) => lazy(() => loaded(load));

interface Props {
  /** Shown while it is loaded. */
  fallback: ReactNode;
  children: ReactNode;
}

/** Around such a part: its failure leaves the rest of the page. */
export class Later extends Component<Props, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === undefined) return <Suspense fallback={this.props.fallback}>{this.props.children}</Suspense>;
    const isNewer = error instanceof NotLoaded;
    return (
      <div className="notice tone-bad" role="alert">
        <strong>{isNewer ? "This part of the page cannot be loaded." : "This part of the page has failed."}</strong>
        <span>{isNewer ? "The page is newer now: reload." : error instanceof Error ? error.message : String(error)}</span>
        <button type="button" onClick={() => location.reload()}>
          Reload
        </button>
      </div>
    );
  }
}
