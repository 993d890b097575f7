import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/client.ts';
import { healthQuery } from '../../api/queries.ts';
import { SuccessRatio } from '../../parts/ratio-bar.tsx';
import { Status, webhookState, WebhookStatus } from '../../parts/status.tsx';
import { When } from '../../parts/time/when.tsx';

/** Asks for the health of a webhook; until it is known, only what the webhook itself says. */
export function HealthState({ webhook }: { webhook: Pick<Schemas['Webhook'], 'id' | 'disabled'> }) {
  const { data, error } = useQuery(healthQuery(webhook.id));
  if (data !== undefined) return <WebhookStatus state={webhookState(webhook.disabled, data)} />;
  if (webhook.disabled) return <WebhookStatus state="disabled" />;
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
