// Tabs as people with a keyboard know them: one stop, and arrows between them.

import { type KeyboardEvent, type ReactNode, useId } from "react";

interface Props<T extends string> {
  label: string;
  tabs: [T, string][];
  chosen: T;
  choose: (tab: T) => void;
  children: ReactNode;
  className: string;
}

/** The place that a key leads to; undefined: the key means nothing here. */
export function tabAfter(key: string, at: number, count: number): number | undefined {
  if (key === "ArrowRight") return (at + 1) % count;
  if (key === "ArrowLeft") return (at + count - 1) % count;
  if (key === "Home") return 0;
  return key === "End" ? count - 1 : undefined;
}

export function Tabs<T extends string>({ label, tabs, chosen, choose, children, className }: Props<T>) {
  const id = useId();
  const press = (e: KeyboardEvent<HTMLElement>) => {
    const at = tabs.findIndex(([name]) => name === chosen);
    const next = tabAfter(e.key, at, tabs.length);
    const tab = next === undefined ? undefined : tabs[next];
    if (next === undefined || !tab) return;
    e.preventDefault();
    choose(tab[0]);
    e.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
  };
  return (
    <>
      <div className="tabs" role="tablist" aria-label={label} onKeyDown={press}>
        {tabs.map(([name, title]) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}${name}`}
            aria-controls={`${id}panel`}
            aria-selected={name === chosen}
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => choose(name)}
          >
            {title}
          </button>
        ))}
      </div>
      <div className={className} role="tabpanel" id={`${id}panel`} aria-labelledby={`${id}${chosen}`}>
        {children}
      </div>
    </>
  );
}
