import type { ReactNode } from 'react';
import type { Schemas } from '../api/client.ts';
import { CheckIcon, ClockIcon, CrossIcon, PauseIcon, StopIcon, WarningIcon } from './icons.tsx';
import styles from './parts.module.css';

export type Tone = 'good' | 'bad' | 'waiting' | 'warning' | 'off';

const ICONS: Record<Tone, ReactNode> = {
  good: <CheckIcon />,
  bad: <CrossIcon />,
  waiting: <ClockIcon />,
  warning: <WarningIcon />,
  off: <StopIcon />,
};

/** A state as word, shape and colour. */
export function Status({
  tone,
  children,
  icon,
}: {
  tone: Tone;
  children: ReactNode;
  icon?: ReactNode;
}) {
  return (
    <span className={styles.status} data-tone={tone}>
      {icon ?? ICONS[tone]}
      <span>{children}</span>
    </span>
  );
}

const DELIVERY_TONES: Record<Schemas['MessageStatus'], Tone> = {
  no_target: 'off',
  pending: 'waiting',
  delivered: 'good',
  exhausted: 'bad',
  cancelled: 'off',
};

/** Of a delivery, or of a message with all of its deliveries. */
export function DeliveryStatus({ status }: { status: Schemas['MessageStatus'] }) {
  return <Status tone={DELIVERY_TONES[status]}>{status.replace('_', ' ')}</Status>;
}

export type WebhookState =
  | 'disabled'
  | 'on hold'
  | 'circuit open'
  | 'circuit half open'
  | 'paused'
  | 'failing'
  | 'slow'
  | 'ok'
  | 'idle';

/** What a webhook itself says about its state. */
export type StatefulWebhook = Pick<Schemas['Webhook'], 'disabled' | 'held'>;

const SLOW_MS = 1_000;
const FAILING_BELOW = 0.95;

/** Returns the most important thing to say about a webhook; null health: it is not known. */
export function webhookState(
  { disabled, held }: StatefulWebhook,
  health: Schemas['WebhookHealth'] | null,
): WebhookState | null {
  if (disabled) return 'disabled';
  if (held !== null) return 'on hold';
  if (health === null) return null;
  if (health.circuit === 'open') return 'circuit open';
  if (health.circuit === 'half_open') return 'circuit half open';
  if (health.held !== null) return 'on hold';
  if (health.pausedUntil !== null) return 'paused';
  if (health.successRate === null) return 'idle';
  if (health.successRate < FAILING_BELOW) return 'failing';
  return (health.latencyMs.p95 ?? 0) > SLOW_MS ? 'slow' : 'ok';
}

const STATE_TONES: Record<WebhookState, Tone> = {
  disabled: 'off',
  'on hold': 'warning',
  'circuit open': 'bad',
  'circuit half open': 'warning',
  paused: 'warning',
  failing: 'bad',
  slow: 'warning',
  ok: 'good',
  idle: 'waiting',
};

export function WebhookStatus({ state }: { state: WebhookState }) {
  const icon = state === 'paused' || state === 'on hold' ? <PauseIcon /> : undefined;
  return (
    <Status tone={STATE_TONES[state]} icon={icon}>
      {state}
    </Status>
  );
}
