import { Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Status } from '../../parts/status.tsx';
import styles from './start.module.css';

interface StepProps {
  title: string;
  isDone: boolean;
  /** Leads to where the step is taken, until it is done. */
  next?: ReactNode;
  /** Leads to what the step made, once it is done. */
  made?: ReactNode;
  children: ReactNode;
}

export function Step({ title, isDone, next, made, children }: StepProps) {
  const link = isDone ? made : next;
  return (
    <li className={styles.step}>
      <div className={styles.head}>
        <Title order={2} size="h4">
          {title}
        </Title>
        <Status tone={isDone ? 'good' : 'waiting'}>{isDone ? 'done' : 'to do'}</Status>
      </div>
      {children}
      {link !== undefined && <div>{link}</div>}
    </li>
  );
}
