// Fields of forms: a text, a mark, and a list whose entries have several fields.

import type { Row } from "../model/project";

interface FieldProps {
  title: string;
  value: string;
  set: (value: string) => void;
  name?: string;
  hint?: string;
  required?: boolean;
  disabled?: boolean;
  /** Nothing of it is shown, and the browser keeps none of it. */
  secret?: boolean;
  /** It has lines: so many at first. */
  rows?: number;
  placeholder?: string;
  pattern?: string;
}

export function Field({ title, value, set, name, hint, required, disabled, secret, rows, placeholder, pattern }: FieldProps) {
  const shared = { name, value, required, disabled, placeholder, spellCheck: false, autoComplete: secret ? "new-password" : "off" };
  return (
    <label>
      {title}
      {rows ? (
        <textarea rows={rows} {...shared} onChange={(e) => set(e.target.value)} />
      ) : (
        <input type={secret ? "password" : "text"} pattern={pattern} title={pattern && hint} {...shared} onChange={(e) => set(e.target.value)} />
      )}
      {hint && <small>{hint}</small>}
    </label>
  );
}

export function Check({ title, hint, on, set, name }: { title: string; hint?: string; on: boolean; set: (on: boolean) => void; name?: string }) {
  return (
    <label className="check">
      <input type="checkbox" name={name} checked={on} onChange={(e) => set(e.target.checked)} />
      <span>
        {title}
        {hint && <small>{hint}</small>}
      </span>
    </label>
  );
}

export interface Column {
  key: string;
  title: string;
  /** `lines` is a list of texts, one a line; `area` is one text with lines. */
  kind?: "text" | "lines" | "area" | "check";
  hint?: string;
  options?: string[];
  placeholder?: string;
  required?: boolean;
}

/** A list whose entries have several fields. What no column shows of an entry stays. */
export function Rows({ title, one, columns, rows, change, fresh = {} }: { title: string; one: string; columns: Column[]; rows: Row[]; change: (rows: Row[]) => void; fresh?: Row }) {
  const cell = (row: Row, at: number, { key, title, kind, hint, options, placeholder, required }: Column) => {
    const set = (value: unknown) => change(rows.with(at, { ...row, [key]: value }));
    const value = row[key];
    if (kind === "check") return <Check key={key} name={key} title={title} on={value === true} set={set} />;
    if (kind === "lines")
      return <Field key={key} name={key} title={`${title}, one a line`} rows={2} hint={hint ?? ""} placeholder={placeholder ?? ""} value={((value as string[] | undefined) ?? []).join("\n")} set={(text) => set(text === "" ? [] : text.split("\n"))} />;
    const text = typeof value === "string" ? value : "";
    if (kind === "area") return <Field key={key} name={key} title={title} rows={4} hint={hint ?? ""} placeholder={placeholder ?? ""} value={text} set={set} />;
    if (!options) return <Field key={key} name={key} title={title} hint={hint ?? ""} placeholder={placeholder ?? ""} required={required ?? false} value={text} set={set} />;
    return (
      <label key={key}>
        {title}
        <select name={key} value={text} onChange={(e) => set(e.target.value)}>
          {(value === undefined || options.includes(text) ? options : [text, ...options]).map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      </label>
    );
  };
  return (
    <div className="rows" role="group" aria-label={title}>
      {rows.map((row, at) => (
        <fieldset key={at}>
          <legend>
            {one} {at + 1}
          </legend>
          <div className="two">{columns.map((column) => cell(row, at, column))}</div>
          <button type="button" className="small" aria-label={`Remove ${one} ${at + 1}`} onClick={() => change(rows.toSpliced(at, 1))}>
            Remove
          </button>
        </fieldset>
      ))}
      <button type="button" className="small" onClick={() => change([...rows, fresh])}>
        Add a {one}
      </button>
    </div>
  );
}
