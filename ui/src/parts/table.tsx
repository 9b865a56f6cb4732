// A table that scrolls by itself when it is wider than the screen.

import type { ReactNode } from "react";

export interface TableRow {
  key: string;
  cells: ReactNode[];
}

export function Table({ title, heads, rows }: { title: string; heads: string[]; rows: TableRow[] }) {
  return (
    <div className="table-box" tabIndex={0} role="group" aria-label={`Table of ${title}`}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, cells }) => (
            <tr key={key}>
              {cells.map((cell, i) => (
                <td key={i}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
