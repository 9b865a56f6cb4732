// What is done with one Application from the list: the star that marks it, and the menu of its row.

import type { Application } from "../api/types";
import { applicationPath, navigate } from "../router";
import type { Deed } from "./bulk";
import { Item, MenuButton } from "./menu";

export type Command = Deed | "favourite";

export interface Commands {
  app: Application;
  favourite: boolean;
  act: (command: Command, app: Application) => void;
}

export const idOf = ({ metadata }: Application) => ({ name: metadata.name, namespace: metadata.namespace ?? "" });

export function Star({ app, favourite, act }: Commands) {
  return (
    <button
      type="button"
      className="quiet star"
      aria-pressed={favourite}
      aria-label={`Favourite ${app.metadata.name}`}
      title={favourite ? "One of your favourites" : "Make it a favourite, in this browser"}
      onClick={() => act("favourite", app)}
    >
      <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d="M8 2l1.850 3.800 4.150.6-3 2.900.7 4.150L8 11.500l-3.700 1.950.7-4.150-3-2.900 4.150-.6z" />
      </svg>
    </button>
  );
}

export function AppMenu({ app, favourite, act }: Commands) {
  return (
    <MenuButton label={`Menu of ${app.metadata.name}`}>
      {() => (
        <>
          <Item name="open" act={() => navigate(applicationPath(idOf(app)))}>
            Open
          </Item>
          <Item name="sync" act={() => act("sync", app)}>
            Sync…
          </Item>
          <Item name="refresh" act={() => act("refresh", app)}>
            Refresh
          </Item>
          <Item name="hard" act={() => act("hard", app)}>
            Hard refresh
          </Item>
          <Item name="favourite" act={() => act("favourite", app)}>
            {favourite ? "No favourite any more" : "Make it a favourite"}
          </Item>
          <Item name="delete" danger act={() => act("delete", app)}>
            Delete…
          </Item>
        </>
      )}
    </MenuButton>
  );
}
