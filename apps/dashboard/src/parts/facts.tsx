import type { ReactNode } from 'react';
import styles from './facts.module.css';

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
