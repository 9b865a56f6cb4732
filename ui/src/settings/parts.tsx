// What the parts of the settings share: a list with its buttons.

import type { ReactNode } from "react";
import type { ConnectionState } from "../api/settings";
import type { Asked } from "../asked";
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
