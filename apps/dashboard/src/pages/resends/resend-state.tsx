import type { Schemas } from '../../api/client.ts';
import { CountsBar } from '../../parts/ratio-bar.tsx';
import { Status, type Tone } from '../../parts/status.tsx';

type Resend = Schemas['Resend'];

const TONES: Record<Resend['status'], Tone> = { running: 'waiting', done: 'good', aborted: 'off' };

export function ResendStatus({ resend: { status, abortAskedAt } }: { resend: Resend }) {
  const isAborting = status === 'running' && abortAskedAt !== null;
  return <Status tone={TONES[status]}>{isAborting ? 'aborting' : status}</Status>;
}

export function ResendCounts({ resend: { status, total, succeeded, failed } }: { resend: Resend }) {
  const rest = Math.max(0, total - succeeded - failed);
  const left = { name: status === 'aborted' ? 'not sent' : 'to do', count: rest } as const;
  return (
    <CountsBar
      parts={[
        { name: 'succeeded', count: succeeded, tone: 'good' },
        { name: 'failed', count: failed, tone: 'bad' },
        { ...left, tone: status === 'aborted' ? 'off' : 'waiting' },
      ]}
    />
  );
}
