import type { Schemas } from '../../api/client.ts';
import { CountsBar } from '../../parts/figures.tsx';
import { Status, type Tone } from '../../parts/status.tsx';

type Resend = Schemas['Resend'];

const TONES: Record<Resend['status'], Tone> = { running: 'waiting', done: 'good', aborted: 'off' };

export function ResendStatus({ resend: { status, abortAskedAt } }: { resend: Resend }) {
  const isAborting = status === 'running' && abortAskedAt !== null;
  return <Status tone={TONES[status]}>{isAborting ? 'aborting' : status}</Status>;
}

export function ResendCounts({ resend }: { resend: Resend }) {
  const { kind, status, total, succeeded, failed, done, skipped } = resend;
  const rest = Math.max(0, total - done - skipped);
  const left = { name: status === 'aborted' ? 'not sent' : 'to do', count: rest } as const;
  return (
    <CountsBar
      parts={[
        ...(kind === 'replay'
          ? ([
              { name: 'sent', count: done, tone: 'good' },
              { name: 'skipped', count: skipped, tone: 'off' },
            ] as const)
          : ([
              { name: 'succeeded', count: succeeded, tone: 'good' },
              { name: 'failed', count: failed, tone: 'bad' },
            ] as const)),
        { ...left, tone: status === 'aborted' ? 'off' : 'waiting' },
      ]}
    />
  );
}
