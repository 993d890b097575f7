import type { Schemas } from '../../api/client.ts';
import { type Column, Rows } from '../../parts/table.tsx';
import { absoluteTime, countText } from '../../parts/time-words.ts';
import styles from './overview.module.css';

type Point = Schemas['OverviewPoint'];

/** The numbers of the chart, for reading exactly and for people who do not see it. */
export function SeriesTable({ series }: { series: readonly Point[] }) {
  const rows = series.filter(({ delivered, failed }) => delivered + failed > 0).toReversed();
  return (
    <details className={styles.details}>
      <summary>The same as a table, newest first</summary>
      <Rows
        caption="Delivered and failed over time"
        columns={COLUMNS}
        rows={rows}
        keyOf={({ at }) => at}
      />
    </details>
  );
}

const COLUMNS: readonly Column<Point>[] = [
  { name: 'From', cell: ({ at }) => <time dateTime={at}>{absoluteTime(Date.parse(at))}</time> },
  { name: 'Delivered', isNumber: true, cell: ({ delivered }) => countText(delivered) },
  { name: 'Failed', isNumber: true, cell: ({ failed }) => countText(failed) },
];
