// What the parts of the settings share: a list with its buttons, and fields.

import type { ReactNode } from "react";
import type { ConnectionState } from "../api/settings";
import type { Asked } from "../asked";
import type { Row } from "../model/project";
import { Copy } from "../parts/copy";
import { Failure } from "../parts/shell";
import { Badge } from "../parts/status";
import { Table, type TableRow } from "../parts/table";

interface ListProps<T> {
  title: string;
  asked: Asked<T[]>;
  heads: string[];
  row: (item: T) => TableRow;
  none?: string;
  /** Buttons. */
  children?: ReactNode;
}

export function List<T>({ title, asked, heads, row, none = "There are none.", children }: ListProps<T>) {
  const rows = asked.value?.map(row);
  return (
    <section className="settings-part" aria-label={title} aria-busy={asked.busy}>
      <div className="section-head">
        <h2>{title}</h2>
        {rows && <span className="total">{rows.length}</span>}
        <span className="grow" />
        {children}
      </div>
      {asked.error && <Failure error={asked.error} what={`${title} cannot be listed.`} />}
      {!rows && !asked.error && <div className="skeleton" role="status" aria-label="Loading" />}
      {rows?.length === 0 && <p className="dim">{none}</p>}
      {rows && rows.length > 0 && <Table title={title} heads={heads} rows={rows} />}
    </section>
  );
}

/** A button of a row, which says of what it is. */
export function RowButton({ title, of, danger, onClick }: { title: string; of: string; danger?: boolean; onClick: () => void }) {
  return (
    <button type="button" className={danger ? "small danger" : "small"} aria-label={`${title} ${of}`} onClick={onClick}>
      {title}
    </button>
  );
}

export function Connection({ state }: { state: ConnectionState | undefined }) {
  return (
    <>
      <Badge word={state?.status} />
      {state?.message && <div className="dim">{state.message}</div>}
    </>
  );
}

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
  /** `lines` is a list of texts, one a line. */
  kind?: "text" | "lines" | "check";
  options?: string[];
  placeholder?: string;
  required?: boolean;
}

/** A list whose entries have several fields. What no column shows of an entry stays. */
export function Rows({ title, one, columns, rows, change, fresh = {} }: { title: string; one: string; columns: Column[]; rows: Row[]; change: (rows: Row[]) => void; fresh?: Row }) {
  const cell = (row: Row, at: number, { key, title, kind, options, placeholder, required }: Column) => {
    const set = (value: unknown) => change(rows.with(at, { ...row, [key]: value }));
    const value = row[key];
    if (kind === "check") return <Check key={key} name={key} title={title} on={value === true} set={set} />;
    if (kind === "lines")
      return <Field key={key} name={key} title={`${title}, one a line`} rows={2} placeholder={placeholder ?? ""} value={((value as string[] | undefined) ?? []).join("\n")} set={(text) => set(text === "" ? [] : text.split("\n"))} />;
    const text = typeof value === "string" ? value : "";
    if (!options) return <Field key={key} name={key} title={title} placeholder={placeholder ?? ""} required={required ?? false} value={text} set={set} />;
    return (
      <label key={key}>
        {title}
        <select name={key} value={text} onChange={(e) => set(e.target.value)}>
          {options.map((option) => (
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

/** A token is shown once: the server keeps none. */
export function NewToken({ token, onClose }: { token: string; onClose: () => void }) {
  return (
    <div className="notice tone-good new-token" role="alert">
      <strong>The new token. It is not shown again.</strong>
      <code>{token}</code>
      <span className="tools">
        <Copy text={token} label="Copy the token" />
        <button type="button" className="small" onClick={onClose}>
          I have it
        </button>
      </span>
    </div>
  );
}
