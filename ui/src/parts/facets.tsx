// What the list is filtered by besides words and states: a field is chosen, then its values, which stand beside it until they are taken away.

import { type FormEvent, useId, useMemo, useRef, useState } from "react";
import type { Application } from "../api/types";
import { type Chosen, type Facet, FACETS, isPicked, NAMED, proposals, toggled } from "../model/facets";

interface Props {
  apps: readonly Application[];
  chosen: Chosen;
  choose: (facet: Facet, values: readonly string[]) => void;
}

export function Facets({ apps, chosen, choose }: Props) {
  const [facet, setFacet] = useState<Facet>("proj");
  const [text, setText] = useState("");
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const known = useMemo(() => proposals(apps, facet), [apps, facet]);
  const add = (value: string) => {
    const values = chosen[facet] ?? [];
    if (value && !values.includes(value)) choose(facet, [...values, value]);
    setText("");
  };
  const submit = (e: FormEvent) => {
    e.preventDefault();
    add(text.trim());
  };
  const change = (value: string, event: Event) => {
    if (known.includes(value) && isPicked((event as InputEvent).inputType)) add(value);
    else setText(value);
  };
  return (
    <div className="app-facets" role="group" aria-label="More filters">
      <form onSubmit={submit}>
        <select aria-label="Filter by" value={facet} onChange={(e) => setFacet(e.target.value as Facet)}>
          {NAMED.map((name) => (
            <option key={name} value={name}>
              {FACETS[name]}
            </option>
          ))}
        </select>
        <input ref={input} aria-label={`${FACETS[facet]}, then Enter`} placeholder={facet === "labels" || facet === "annotations" ? "team=shop, team!=shop, team" : "any; *, ?, {a,b} and [a-z] are patterns"} list={id} autoComplete="off" spellCheck={false} value={text} onChange={(e) => change(e.target.value, e.nativeEvent)} />
        <datalist id={id}>
          {known.map((value) => (
            <option key={value}>{value}</option>
          ))}
        </datalist>
        {text.trim() !== "" && (
          <button type="submit" className="small">
            Add filter
          </button>
        )}
      </form>
      {NAMED.flatMap((name) =>
        (chosen[name] ?? []).map((value) => (
          <button
            key={`${name} ${value}`}
            type="button"
            className="app-chip"
            aria-label={`Remove the filter ${FACETS[name]} ${value}`}
            onClick={() => {
              choose(name, toggled(chosen[name], value));
              // The button that has it is gone by then.
              input.current?.focus();
            }}
          >
            <span className="dim">{FACETS[name]}</span> {value} <span aria-hidden="true">✕</span>
          </button>
        )),
      )}
    </div>
  );
}
