import { useQuery } from '@tanstack/react-query';
import { healthQuery } from '../../api/webhooks.ts';
import { SuccessRatio } from '../../parts/figures.tsx';
import { type StatefulWebhook, Status, webhookState, WebhookStatus } from '../../parts/status.tsx';
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
