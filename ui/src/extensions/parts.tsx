// Where extensions are drawn. One that fails takes nothing else along.

import { Component, type ReactNode, useEffect, useMemo, useRef } from "react";
import type { Application, ApplicationTree } from "../api/types";
import { setQuery, useQuery } from "../router";
import { type ActionExtension, flyoutOf, isShown, type ResourceExtension, type StatusExtension, useExtensions } from "./registry";

/** The page does not know what an extension has inside. */
export class Guard extends Component<{ title: string; children: ReactNode }, { failed: string | undefined }> {
  override state = { failed: undefined as string | undefined };
  static getDerivedStateFromError(e: unknown) {
    return { failed: e instanceof Error ? e.message : String(e) };
  }
  override render() {
    const { failed } = this.state;
    if (failed === undefined) return this.props.children;
    return (
      <div className="notice tone-bad" role="alert">
        <strong>The extension {this.props.title} failed.</strong>
        <span>{failed}</span>
      </div>
    );
  }
}

const NO_TREE: ApplicationTree = { nodes: [] };

interface OfApp {
  app: Application;
  tree: ApplicationTree | undefined;
}

const open = ({ id, flyout }: StatusExtension | ActionExtension) => () => flyout && setQuery({ extension: id });

/** Parts of the state of an Application. */
export function StatusParts({ app }: { app: Application }) {
  const { statuses } = useExtensions();
  return statuses.map((one) => (
    <div key={one.id} data-extension={one.id}>
      <dt>{one.title}</dt>
      <dd>
        <Guard title={one.title}>
          <one.component application={app} openFlyout={open(one)} />
        </Guard>
      </dd>
    </div>
  ));
}

/** Buttons beside those of an Application. */
export function ActionParts({ app, tree }: OfApp) {
  const { actions } = useExtensions();
  return actions
    .filter((one) => isShown(one, app))
    .map((one) => (
      <button key={one.id} type="button" data-extension={one.id} title={one.title} onClick={open(one)}>
        <Guard title={one.title}>
          <one.component application={app} tree={tree ?? NO_TREE} openFlyout={open(one)} />
        </Guard>
      </button>
    ));
}

/** What a part of the state or a button opens. */
export function Flyout({ app, tree }: OfApp) {
  const found = flyoutOf(useExtensions(), useQuery("extension"));
  const dialog = useRef<HTMLDialogElement>(null);
  const id = found?.id;
  useEffect(() => {
    if (dialog.current && !dialog.current.open) dialog.current.showModal();
  }, [id]);
  if (!found?.flyout) return null;
  return (
    <dialog key={id} ref={dialog} className="middle" aria-label={found.title} onClose={() => setQuery({ extension: "" })}>
      <div className="page-head">
        <h2>{found.title}</h2>
        <span className="grow" />
        <button type="button" className="quiet" aria-label="Close" onClick={() => dialog.current?.close()}>
          ✕
        </button>
      </div>
      <Guard title={found.title}>
        <found.flyout application={app} tree={tree ?? NO_TREE} />
      </Guard>
    </dialog>
  );
}

/** Another way to see the resources; undefined: the Application has none of this title. */
export function useView(app: Application | undefined, title: string) {
  const { views } = useExtensions();
  return app && title ? views.find((one) => one.title === title && isShown(one, app)) : undefined;
}

export function ViewPart({ title, app, tree }: OfApp & { title: string }) {
  const found = useView(app, title);
  if (!found) return null;
  return (
    <Guard key={title} title={title}>
      <found.component application={app} tree={tree ?? NO_TREE} />
    </Guard>
  );
}

/** A tab of a resource. `manifest` is its live object in JSON. */
export function ResourceTab({ extension, app, tree, manifest }: OfApp & { extension: ResourceExtension; manifest: string | undefined }) {
  const resource = useMemo(() => (manifest ? (JSON.parse(manifest) as unknown) : undefined), [manifest]);
  if (manifest === undefined) return <p className="dim">Loading…</p>;
  if (!manifest) return <p className="dim">This resource is not in the cluster.</p>;
  return (
    <Guard key={extension.title} title={extension.title}>
      <extension.component application={app} tree={tree ?? NO_TREE} resource={resource} />
    </Guard>
  );
}

/** A page of an extension; undefined: none has this path. */
export function usePage(path: string) {
  const found = useExtensions().pages.find((one) => one.path === path);
  return (
    found && (
      <div className="page">
        <Guard key={found.path} title={found.title}>
          <found.component />
        </Guard>
      </div>
    )
  );
}
