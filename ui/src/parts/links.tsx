// Links of an Application or of a resource: those that the server makes of its settings, and those that the objects themselves name.

import { useCallback } from "react";
import type { AppName } from "../api/client";
import { resources } from "../api/resources";
import type { ResourceRef } from "../api/types";
import { useAsked } from "../asked";
import { allLinks } from "../model/links-of";

interface Props {
  app: AppName;
  /** Undefined: of the Application itself. */
  of?: ResourceRef;
  /** Addresses that are known already. */
  known: readonly string[] | undefined;
}

/** Nothing where there are none. */
export function Links({ app: { name, namespace }, of, known }: Props) {
  const key = of && [of.group, of.version, of.kind, of.namespace, of.name].join("/");
  const { value, error } = useAsked(useCallback((signal: AbortSignal) => resources.links({ name, namespace }, of, signal), [name, namespace, key]));
  const links = allLinks(value, known);
  if (links.length === 0 && !error) return null;
  return (
    <ul className="links" aria-label="Links">
      {error && <li className="wrong">Links cannot be read: {error.message}</li>}
      {links.map(({ title, url, description }) => (
        <li key={`${title} ${url}`}>
          <a href={url} title={description} target="_blank" rel="noreferrer">
            {title}
          </a>
        </li>
      ))}
    </ul>
  );
}
