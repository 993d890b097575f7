import type { ReactNode } from 'react';
import styles from './parts.module.css';

export interface Column<Row> {
  name: string;
  cell: (row: Row) => ReactNode;
  /** In rem. Columns without one share what is left. */
  width?: number;
  /** Numbers are aligned at their end. */
  isNumber?: boolean;
}

interface RowsProps<Row> {
  /** What the table lists, for people who do not see it. */
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
}

/**
 * A table whose columns keep their widths, whatever is in them: `Cut` cuts what is longer. Where there is little room, each
 * row becomes a card with the names of the columns beside the values.
 */
export function Rows<Row>({ caption, columns, rows, keyOf }: RowsProps<Row>) {
  return (
    <div className={styles.frame}>
      <table className={styles.table}>
        <caption className={styles.caption}>{caption}</caption>
        <colgroup>
          {columns.map(({ name, width }) => (
            <col key={name} style={width === undefined ? {} : { width: `${width}rem` }} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {columns.map(({ name, isNumber }) => (
              <th key={name} scope="col" data-number={isNumber}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ name, cell, isNumber }) => (
                <td key={name} data-name={name} data-number={isNumber}>
                  <div className={styles.value}>{cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Widths of columns, in rem, for what many tables have. */
export const WIDTHS = { time: 8.5, status: 8, number: 5.5, id: 15.5 };
