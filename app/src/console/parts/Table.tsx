/** A table that becomes a list of cards where it is narrow, and the way to more of it. */
import type { ComponentChildren } from "preact";

import { Button } from "../../components/parts";
import type { PagedLoad } from "../data";
import { Problem } from "./Problem";

export interface Column<T> {
  head: string;
  cell: (row: T) => ComponentChildren;
  /** Numbers stand to the right. */
  number?: boolean;
  /** Whether the head is for those alone who do not see the table, as above buttons. */
  hideHead?: boolean;
}

interface TableProps<T> {
  /** What the table is of, for those who do not see it. */
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  rowKey: (row: T) => string | number;
  /** Where it is narrow, what follows the first column stands in one line. */
  compact?: boolean;
}

/** The roles are named: browsers forget them where a table is not laid out as one. */
export function Table<T>({ label, columns, rows, rowKey, compact }: TableProps<T>) {
  return (
    <div class="table-frame">
      <table class={compact ? "table compact" : "table"} role="table" aria-label={label}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((it) => (
              <th key={it.head} role="columnheader" scope="col" class={it.number ? "number" : ""}>
                <span class={it.hideHead ? "hidden" : ""}>{it.head}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={rowKey(row)} role="row">
              {columns.map((it) => (
                <td key={it.head} role="cell" class={it.number ? "number" : ""} data-label={it.hideHead ? undefined : it.head}>
                  {it.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface PagedProps<T> extends Omit<TableProps<T>, "rows"> {
  list: PagedLoad<T>;
  /** What is shown where there are no rows. */
  empty: ComponentChildren;
}

/** A table of a list that is read page by page. */
export function PagedTable<T>({ list, empty, ...table }: PagedProps<T>) {
  return (
    <>
      <Problem error={list.error} onRetry={list.reload} />
      {list.items === null && !list.error && (
        <p class="soft" role="status" aria-busy="true">
          Loading…
        </p>
      )}
      {list.items?.length === 0 && empty}
      {!!list.items?.length && <Table {...table} rows={list.items} />}
      <Pager list={list} />
    </>
  );
}

/** How many entries there are so far, and more of them. */
export function Pager<T>({ list }: { list: PagedLoad<T> }) {
  if (!list.items?.length || !list.hasMore) return null;
  return (
    <div class="line">
      <Button disabled={list.busy} onClick={() => void list.more()}>
        {list.busy ? "Loading…" : "Show more"}
      </Button>
      <span class="soft small">{list.items.length.toLocaleString()} shown</span>
    </div>
  );
}
