// The extensions of the page: scripts that whoever runs the control plane adds. The names are those of Argo CD, for which they are written.

import { type ComponentType, useSyncExternalStore } from "react";
import type { Application, ApplicationTree } from "../api/types";
import { fits } from "../model/pattern";

interface OfApplication {
  application: Application;
  tree: ApplicationTree;
}

/** A tab of resources of some kinds. `resource` is the live object. */
export interface ResourceExtension {
  component: ComponentType<OfApplication & { resource: unknown }>;
  group: string;
  kind: string;
  title: string;
}

/** A page of its own. */
export interface PageExtension {
  component: ComponentType;
  title: string;
  path: string;
}

/** Another way to see the resources of an Application. */
export interface ViewExtension {
  component: ComponentType<OfApplication>;
  title: string;
  shouldDisplay: (app: Application) => boolean;
}

/** A part of an Application's state, and what it opens. */
export interface StatusExtension {
  component: ComponentType<{ application: Application; openFlyout: () => void }>;
  flyout: ComponentType<OfApplication> | undefined;
  title: string;
  id: string;
}

/** A button beside those of an Application, and what it opens. */
export interface ActionExtension {
  component: ComponentType<OfApplication & { openFlyout: () => void }>;
  flyout: ComponentType<OfApplication> | undefined;
  title: string;
  id: string;
  shouldDisplay: (app: Application) => boolean;
}

export interface Extensions {
  resources: readonly ResourceExtension[];
  pages: readonly PageExtension[];
  views: readonly ViewExtension[];
  statuses: readonly StatusExtension[];
  actions: readonly ActionExtension[];
}

let registered: Extensions = { resources: [], pages: [], views: [], statuses: [], actions: [] };
const listeners = new Set<() => void>();

function add<K extends keyof Extensions>(kind: K, extension: Extensions[K][number]) {
  registered = { ...registered, [kind]: [...registered[kind], extension] };
  for (const tell of listeners) tell();
}

const always = () => true;

/** Scripts have this as `window.extensionsAPI`. Icons are names in a font that this page does not have. */
export const extensionsAPI = {
  registerResourceExtension: (component: ResourceExtension["component"], group: string, kind: string, title: string, _options?: { icon: string }) => add("resources", { component, group, kind, title }),
  registerSystemLevelExtension: (component: ComponentType, title: string, path: string, _icon?: string) => add("pages", { component, title, path: `/${path.replace(/^\/+/, "")}` }),
  registerAppViewExtension: (component: ViewExtension["component"], title: string, _icon?: string, shouldDisplay: ViewExtension["shouldDisplay"] = always) => add("views", { component, title, shouldDisplay }),
  registerStatusPanelExtension: (component: StatusExtension["component"], title: string, id: string, flyout?: StatusExtension["flyout"]) => add("statuses", { component, title, id, flyout }),
  registerTopBarActionMenuExt: (
    component: ActionExtension["component"],
    title: string,
    id: string,
    flyout?: ActionExtension["flyout"],
    shouldDisplay: ActionExtension["shouldDisplay"] = always,
    _icon?: string,
    _isMiddle?: boolean,
  ) => add("actions", { component, title, id, flyout, shouldDisplay }),
};

export const extensions = (): Extensions => registered;

function subscribe(changed: () => void) {
  listeners.add(changed);
  return () => void listeners.delete(changed);
}

export const useExtensions = (): Extensions => useSyncExternalStore(subscribe, extensions);

/** The tabs of a kind of resources, by title: their order is in the addresses of Argo CD's page. */
export const tabsFor = ({ resources }: Extensions, group: string, kind: string): readonly ResourceExtension[] =>
  resources.filter((one) => fits(one.group, group) && fits(one.kind, kind)).sort((a, b) => a.title.localeCompare(b.title));

/** Whether it wants to be shown. One that fails is not. */
export function isShown({ title, shouldDisplay }: Pick<ViewExtension, "title" | "shouldDisplay">, app: Application): boolean {
  try {
    return Boolean(shouldDisplay(app));
  } catch (e) {
    console.error(`The extension ${title} failed:`, e);
    return false;
  }
}

/** What the address opens (`extension=`). */
export const flyoutOf = ({ statuses, actions }: Extensions, id: string) => [...statuses, ...actions].find((one) => one.id === id && one.flyout !== undefined);
