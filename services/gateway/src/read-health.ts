import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { AttemptFigures, DeliveryQueries } from '@posthorn/platform/mongo/delivery-queries.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/message-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import type { Health } from './answers/health.ts';

export interface HealthDeps {
  webhooks: Pick<WebhookStore, 'has'>;
  messages: Pick<MessageQueries, 'listOutlines'>;
  deliveries: Pick<DeliveryQueries, 'attemptFiguresOf' | 'countPending'>;
  circuits: Pick<OpenCircuits, 'read'>;
  nowMs: () => number;
}

/** Null when there is no such webhook of the company. */
export type ReadHealth = (companyId: string, webhookId: string) => Promise<Health | null>;

/** The newest 200; fewer where each went to more than 500 webhooks. */
const BOUNDS = { messages: 200, targets: 100_000 };
const MAX_BACKLOG = 10_000;

/** How deliveries to one webhook fare, from its newest messages; nothing is kept for it on the hot path. */
export function createReadHealth(deps: HealthDeps): ReadHealth {
  const { webhooks, messages, deliveries } = deps;
  return async (companyId, webhookId) => {
    if (!(await webhooks.has(companyId, webhookId))) return null;
    const newest = await messages.listOutlines(companyId, { webhookId }, BOUNDS);
    const [circuit, known, waiting] = await Promise.all([
      circuitOf(deps, webhookId),
      deliveries.attemptFiguresOf(
        companyId,
        newest.map(({ id }) => deliveryIdOf(id, webhookId)),
      ),
      deliveries.countPending(companyId, webhookId, MAX_BACKLOG),
    ]);
    const untouched = newest.length - known.length;
    const backlog = Math.min(waiting + untouched, MAX_BACKLOG);
    return { circuit, ...figuresOf(known.flat()), backlog };
  };
}

/** As its dispatcher told Redis; while Redis is away nothing is known of any that is open. */
async function circuitOf(
  { circuits, nowMs }: HealthDeps,
  webhookId: string,
): Promise<Health['circuit']> {
  const probeAtMs = await circuits.read(webhookId).catch(() => null);
  if (probeAtMs === null) return 'closed';
  return probeAtMs > nowMs() ? 'open' : 'half_open';
}

function figuresOf(attempts: readonly AttemptFigures[]): Pick<Health, 'successRate' | 'latencyMs'> {
  const durations = attempts.map(({ durationMs }) => durationMs).sort((a, b) => a - b);
  const succeeded = attempts.filter(({ outcome }) => outcome === 'success').length;
  return {
    successRate: attempts.length === 0 ? null : succeeded / attempts.length,
    latencyMs: { p50: percentile(durations, 0.5), p95: percentile(durations, 0.95) },
  };
}

/** Nearest rank; null of nothing. */
function percentile(ascending: readonly number[], share: number): number | null {
  return ascending[Math.ceil(ascending.length * share) - 1] ?? null;
}
