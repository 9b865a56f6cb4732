// How this page looks in this browser.

import { keep, type Kept, useKept } from "../kept";
import { viewOf, VIEWS } from "../model/views";
import { themeOf, THEMES } from "../theme";

export function Appearance() {
  const theme = themeOf(useKept("theme"));
  const view = viewOf("", useKept("view"));
  const diff = useKept("diff") === "split" ? "split" : "unified";
  return (
    <section className="settings-part" aria-label="Appearance">
      <h2>Appearance</h2>
      <p className="dim">Kept in this browser only.</p>
      <Choice name="theme" title="Colours" all={THEMES} chosen={theme} value={(theme) => (theme === "auto" ? "" : theme)} />
      <Choice name="view" title="Applications" all={VIEWS} chosen={view} value={(view) => view} />
      <Choice name="diff" title="Differences" all={{ unified: "One below the other", split: "Side by side" }} chosen={diff} value={(diff) => (diff === "split" ? diff : "")} />
    </section>
  );
}

function Choice<T extends string>({ name, title, all, chosen, value }: { name: Kept; title: string; all: Record<T, string>; chosen: T; value: (word: T) => string }) {
  return (
    <fieldset className="choices">
      <legend>{title}</legend>
      {(Object.entries(all) as [T, string][]).map(([word, text]) => (
        <label key={word} className="inline">
          <input type="radio" name={name} value={word} checked={word === chosen} onChange={() => keep(name, value(word))} /> {text}
        </label>
      ))}
    </fieldset>
  );
}
