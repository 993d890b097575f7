import type { ReactNode } from 'react';
import { useSession } from '../session/session-context.ts';
import { Copyable } from './copy/copyable.tsx';
import styles from './facts.module.css';
import type { OwnFields } from './own-fields.ts';

type Fact = readonly [name: string, value: ReactNode];

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

/** The own fields among the facts of something. The portal does not show uids. */
export function useOwnFacts({ uid, metadata }: OwnFields): Fact[] {
  const { kind } = useSession();
  const entries = Object.entries(metadata);
  const shown = entries.map(([key, value]) => (
    <div key={key}>
      {key}: <Copyable text={value} name={`metadata ${key}`} />
    </div>
  ));
  return [
    ...(kind === 'portal'
      ? []
      : [['Uid', uid === null ? 'none' : <Copyable key="uid" text={uid} name="uid" />] as const]),
    ['Metadata', entries.length === 0 ? 'none' : shown],
  ];
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
