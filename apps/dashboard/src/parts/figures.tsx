import type { ReactNode } from 'react';
import { countText } from './time-words.ts';
import { None } from './values.tsx';
import styles from './parts.module.css';

export type Fact = readonly [name: string, value: ReactNode];

/** Names and values, such as what a webhook is set to. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl className={styles.facts}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Few numbers that are read at a glance. */
export function Figures({ figures }: { figures: readonly Figure[] }) {
  return (
    <dl className={styles.figures} data-count={figures.length}>
      {figures.map(({ name, value, note }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
          {note !== undefined && <dd className={styles.note}>{note}</dd>}
        </div>
      ))}
    </dl>
  );
}

export interface Figure {
  name: string;
  value: ReactNode;
  note?: ReactNode;
}

interface Part {
  name: string;
  count: number;
  tone: 'good' | 'bad' | 'waiting' | 'off';
}

/** One stacked bar with its counts as words below it. */
export function CountsBar({ parts }: { parts: readonly Part[] }) {
  const shown = parts.filter(({ count }) => count > 0);
  return (
    <div>
      <svg className={styles.bar} viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        {placed(shown).map(({ name, tone, start, width }) => (
          <rect key={name} data-tone={tone} x={start} y="0" width={width} height="4" />
        ))}
      </svg>
      <ul className={styles.legend}>
        {parts.map(({ name, count, tone }) => (
          <li key={name} data-tone={tone}>
            <strong>{countText(count)}</strong> {name}
          </li>
        ))}
      </ul>
    </div>
  );
}

function placed(parts: readonly Part[]): (Part & { start: number; width: number })[] {
  const total = parts.reduce((sum, { count }) => sum + count, 0);
  let start = 0;
  return parts.map((part) => {
    const width = (part.count / total) * 100;
    const at = { ...part, start, width };
    start += width;
    return at;
  });
}

/** The success ratio as a number with a small bar; a dash when nothing was attempted. */
export function SuccessRatio({ ratio }: { ratio: number | null }) {
  if (ratio === null) return <None />;
  return (
    <span className={styles.ratio}>
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect data-tone="bad" x="0" y="0" width="100" height="8" />
        <rect data-tone="good" x="0" y="0" width={ratio * 100} height="8" />
      </svg>
      {percentText(ratio)}
    </span>
  );
}

/** Never rounds up to 100 %: a failure among thousands is a failure. */
export function percentText(ratio: number): string {
  return `${(Math.floor(ratio * 1_000) / 10).toFixed(1)} %`;
}
