import { Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Status } from '../../parts/status.tsx';
import styles from './start.module.css';

interface StepProps {
  title: string;
  isDone: boolean;
  /** Leads to where the step is taken; not shown once it is done. */
  next: ReactNode;
  children: ReactNode;
}

export function Step({ title, isDone, next, children }: StepProps) {
  return (
    <li className={styles.step}>
      <div className={styles.head}>
        <Title order={2} size="h4">
          {title}
        </Title>
        <Status tone={isDone ? 'good' : 'waiting'}>{isDone ? 'done' : 'to do'}</Status>
      </div>
      {children}
      {!isDone && next !== null && <div>{next}</div>}
    </li>
  );
}
