import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Schemas } from '../../api/client.ts';
import { healthQuery } from '../../api/webhooks.ts';
import { COUNTED_WITHIN } from '../../api/words.ts';
import { CountsBar, Figures, percentText, SuccessRatio } from '../../parts/figures.tsx';
import { type StatefulWebhook, Status, webhookState, WebhookStatus } from '../../parts/status.tsx';
import { countText, durationText } from '../../parts/time-words.ts';
import { When } from '../../parts/values.tsx';

/** Asks for the health of a webhook; until it is known, only what the webhook itself says. */
export function HealthState({ webhook }: { webhook: StatefulWebhook & { id: string } }) {
  const { data = null, error } = useQuery(healthQuery(webhook.id));
  const state = webhookState(webhook, data);
  if (state !== null) return <WebhookStatus state={state} />;
  return <Status tone="waiting">{error === null ? 'asking …' : 'not known'}</Status>;
}

export function HealthRatio({ webhookId }: { webhookId: string }) {
  const { data } = useQuery(healthQuery(webhookId));
  return data === undefined ? '…' : <SuccessRatio ratio={data.successRate} />;
}

export function LastAttempt({ webhookId }: { webhookId: string }) {
  const { data } = useQuery(healthQuery(webhookId));
  return data === undefined ? '…' : <When at={data.lastAttemptAt} />;
}

export function AttemptCounts({ points }: { points: Schemas['StatsPoint'][] }) {
  const sum = (of: (point: Schemas['StatsPoint']) => number): number =>
    points.reduce((total, point) => total + of(point), 0);
  return (
    <>
      <CountsBar
        parts={[
          { name: 'succeeded', count: sum(({ succeeded }) => succeeded), tone: 'good' },
          { name: 'failed', count: sum(({ failed }) => failed), tone: 'bad' },
        ]}
      />
      <Text size="xs" c="dimmed">
        An attempt is counted within {COUNTED_WITHIN}.
      </Text>
    </>
  );
}

export function HealthNow({ health }: { health: Schemas['WebhookHealth'] }) {
  const { successRate, latencyMs, concurrency, ratePerSecond, backlog, circuit } = health;
  return (
    <Figures
      figures={[
        {
          name: 'Success',
          value: successRate === null ? '–' : percentText(successRate),
          note: 'of the newest 200 messages',
        },
        {
          name: 'Median response time',
          value: latencyMs.p50 === null ? '–' : durationText(latencyMs.p50),
          note:
            latencyMs.p95 === null
              ? 'nothing measured'
              : `95 % within ${durationText(latencyMs.p95)}`,
        },
        {
          name: 'At once',
          value: countText(concurrency.now),
          note: `attempts, from ${concurrency.floor} to ${countText(concurrency.ceiling)}`,
        },
        {
          name: 'Pace',
          value: ratePerSecond === null ? 'free' : countText(ratePerSecond),
          note: ratePerSecond === null ? 'no limit' : 'attempts per second',
        },
        { name: 'Waiting', value: countText(backlog), note: 'of the newest 200 messages' },
        {
          name: 'Circuit',
          value: circuit.replace('_', ' '),
          note: circuitNote(health),
        },
      ]}
    />
  );
}

function circuitNote({ circuit, probeAt, pausedUntil }: Schemas['WebhookHealth']): ReactNode {
  if (circuit === 'half_open') return 'the next attempt decides';
  if (circuit === 'open') {
    return (
      <>
        one attempt <When at={probeAt} />
      </>
    );
  }
  if (pausedUntil === null) return undefined;
  return (
    <>
      paused, ends <When at={pausedUntil} />
    </>
  );
}
