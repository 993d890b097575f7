import { useMediaQuery } from '@mantine/hooks';
import { useState } from 'react';
import type { Schemas } from '../api/client.ts';
import type { Range } from '../api/words.ts';
import { type Column, Rows } from '../parts/table.tsx';
import { absoluteTime, countText } from '../parts/time-words.ts';
import styles from './overview.module.css';

type Point = Schemas['OverviewPoint'];

/** In pixels, more or less: the text has its size in both. */
const WIDE = 960;
const NARROW = 340;
const HEIGHT = 220;
/** Room for the numbers on the left and the times below. */
const LEFT = 56;
const BOTTOM = 24;
const TOP = 8;
const BARS_HEIGHT = HEIGHT - BOTTOM - TOP;
const PIXELS_PER_TIME = 110;

const TIME = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

interface SeriesChartProps {
  series: readonly Point[];
  range: Range;
}

/** Stacked bars, failed ones on top and hatched. The table below has the same numbers, for whoever does not see them. */
export function SeriesChart({ series, range }: SeriesChartProps) {
  const [pointed, setPointed] = useState<Point | null>(null);
  const width = useMediaQuery('(max-width: 48em)') ? NARROW : WIDE;
  const format = range === '7d' || range === '30d' ? DAY : TIME;
  const most = niceMost(Math.max(...series.map(({ delivered, failed }) => delivered + failed)));
  const step = (width - LEFT) / series.length;
  const everyTime = Math.ceil((series.length * PIXELS_PER_TIME) / width);
  return (
    <div className={styles.chart} aria-hidden="true">
      <Legend pointed={pointed} />
      <svg
        viewBox={`0 0 ${width} ${HEIGHT}`}
        onMouseLeave={() => {
          setPointed(null);
        }}
      >
        <Hatching />
        {[0, 0.5, 1].map((part) => (
          <Line
            key={part}
            y={TOP + BARS_HEIGHT * (1 - part)}
            width={width}
            text={countText(most * part)}
          />
        ))}
        {series.map((point, index) => (
          <g
            key={point.at}
            onMouseEnter={() => {
              setPointed(point);
            }}
          >
            <Bar point={point} x={LEFT + index * step} width={step} scale={BARS_HEIGHT / most} />
            {index % everyTime === 0 && (
              <text x={LEFT + index * step} y={HEIGHT - 6}>
                {format.format(new Date(point.at))}
              </text>
            )}
          </g>
        ))}
      </svg>
    </div>
  );
}

/** A second sign beside the colour. */
function Hatching() {
  return (
    <defs>
      <pattern
        id="failed"
        width="6"
        height="6"
        patternUnits="userSpaceOnUse"
        patternTransform="rotate(45)"
      >
        <rect width="6" height="6" className={styles.failed} />
        <rect width="2" height="6" className={styles.stripe} />
      </pattern>
    </defs>
  );
}

function Line({ y, width, text }: { y: number; width: number; text: string }) {
  return (
    <>
      <line x1={LEFT} x2={width} y1={y} y2={y} />
      <text x={LEFT - 8} y={y + 4} textAnchor="end">
        {text}
      </text>
    </>
  );
}

interface BarProps {
  point: Point;
  x: number;
  width: number;
  /** Height of one attempt. */
  scale: number;
}

function Bar({ point: { delivered, failed }, x, width, scale }: BarProps) {
  const gap = Math.min(2, width / 4);
  const bottom = TOP + BARS_HEIGHT;
  const place = { x: x + gap / 2, width: width - gap };
  return (
    <>
      <rect x={x} y={TOP} width={width} height={BARS_HEIGHT} className={styles.space} />
      <rect
        {...place}
        y={bottom - delivered * scale}
        height={delivered * scale}
        className={styles.delivered}
      />
      <rect
        {...place}
        y={bottom - (delivered + failed) * scale}
        height={failed * scale}
        fill="url(#failed)"
      />
    </>
  );
}

function Legend({ pointed }: { pointed: Point | null }) {
  return (
    <div className={styles.legend}>
      <span data-tone="good">Delivered{pointed && ` ${countText(pointed.delivered)}`}</span>
      <span data-tone="bad">Failed{pointed && ` ${countText(pointed.failed)}`}</span>
      {pointed && <span>from {absoluteTime(Date.parse(pointed.at))}</span>}
    </div>
  );
}

/** Returns the next of 2, 4, 10, 20, 40, 100 … */
function niceMost(most: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
  const found = [2, 4, 10].find((each) => each * power >= most) ?? 10;
  return found * power;
}

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
  { name: 'Delivered', width: 10, isNumber: true, cell: ({ delivered }) => countText(delivered) },
  { name: 'Failed', width: 10, isNumber: true, cell: ({ failed }) => countText(failed) },
];
