import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { type Hold, isHolding } from '@posthorn/domain/waiting.ts';
import type {
  AttemptFigures,
  DeliveryQueries,
} from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { HoldStates } from '@posthorn/platform/mongo/webhooks/holds.ts';
import type { EndpointFlow, EndpointFlows } from '@posthorn/platform/redis/endpoint-flows.ts';
import type { OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';

/** How a webhook does. Times are in ISO 8601. */
interface Health {
  circuit: 'closed' | 'open' | 'half_open';
  probeAt: string | null;
  lastAttemptAt: string | null;
  /** From 0 to 1. */
  successRate: number | null;
  latencyMs: { p50: number | null; p95: number | null };
  concurrency: { now: number; floor: number; ceiling: number };
  ratePerSecond: number | null;
  /** The end of a pause that its endpoint asked for. */
  pausedUntil: string | null;
  /** The hold by which its deliveries wait: its own, or that of its app. */
  held: Hold | null;
  /** Counted up to 10,000. */
  backlog: number;
}

export interface HealthDeps {
  holds: Pick<HoldStates, 'holdersOf'>;
  messages: Pick<MessageQueries, 'listIds'>;
  deliveries: Pick<DeliveryQueries, 'figuresOf' | 'countPending'>;
  circuits: Pick<OpenCircuits, 'read'>;
  flows: Pick<EndpointFlows, 'read'>;
  /** The bounds of the concurrency limit of an endpoint, as the dispatchers are configured. */
  concurrency: ConcurrencyBounds;
  nowMs: () => number;
}

export interface ConcurrencyBounds {
  floor: number;
  start: number;
  ceiling: number;
}

/** Reads the settings that the dispatchers share. The limit of an endpoint that always fails falls to one. */
export function concurrencyBoundsOf(config: {
  ENDPOINT_CONCURRENCY: number;
  ENDPOINT_CONCURRENCY_MAX: number;
}): ConcurrencyBounds {
  return {
    floor: 1,
    start: config.ENDPOINT_CONCURRENCY,
    ceiling: config.ENDPOINT_CONCURRENCY_MAX,
  };
}

/** The newest messages of the webhook that are examined. */
const MAX_MESSAGES = 200;
const MAX_BACKLOG = 10_000;

/**
 * Computes the health of a webhook from its newest messages, so that accepting and delivering store nothing for it.
 * Returns null when the company has no such webhook.
 */
export async function readHealth(
  deps: HealthDeps,
  companyId: string,
  webhookId: string,
): Promise<Health | null> {
  const { holds, messages, deliveries, nowMs } = deps;
  const holders = (await holds.holdersOf([{ companyId, webhookId }])).get(webhookId);
  if (holders?.webhook?.companyId !== companyId) return null;
  const { webhook, appHeld } = holders;
  const held = [webhook.held ?? null, appHeld].find((each) => isHolding(each, nowMs())) ?? null;
  const [newest, stating] = await Promise.all([
    messages.listIds(companyId, { webhookId }, MAX_MESSAGES),
    messages.listIds(companyId, { disabledWebhookId: webhookId }, MAX_MESSAGES),
  ]);
  const stated = new Set(stating);
  const idOf = (messageId: string): string => deliveryIdOf(messageId, webhookId);
  const ids = newest.filter((id) => !stated.has(id)).map(idOf);
  // Cancelled at acceptance: none is pending, and the attempts are those of resends.
  const cancelledIds = newest.filter((id) => stated.has(id)).map(idOf);
  // Each delivery is counted by one of the two reads: a delivery recorded between them would be counted twice or not
  // at all.
  const [circuit, flow, known, resent, older] = await Promise.all([
    circuitOf(deps, companyId, webhookId),
    deps.flows.read(webhookId).catch(() => null),
    deliveries.figuresOf(companyId, ids),
    deliveries.figuresOf(companyId, cancelledIds),
    deliveries.countPending(companyId, webhookId, ids, MAX_BACKLOG),
  ]);
  const ended = known.filter(({ status }) => status !== 'pending').length;
  const backlog = Math.min(older + ids.length - ended, MAX_BACKLOG);
  const attempts = [...known, ...resent].flatMap((delivery) => delivery.attempts);
  return { ...circuit, ...flowOf(deps, flow), held, ...figuresOf(attempts), backlog };
}

/** Reads what the dispatcher of the webhook has written to Redis. Without Redis every circuit counts as closed. */
async function circuitOf(
  { circuits, nowMs }: HealthDeps,
  companyId: string,
  webhookId: string,
): Promise<Pick<Health, 'circuit' | 'probeAt'>> {
  const probeAtMs = await circuits.read(companyId, webhookId).catch(() => null);
  if (probeAtMs === null) return { circuit: 'closed', probeAt: null };
  return {
    circuit: probeAtMs > nowMs() ? 'open' : 'half_open',
    probeAt: new Date(probeAtMs).toISOString(),
  };
}

/**
 * Shows an endpoint as a new one until a dispatcher has written about it. A dispatcher's own ceiling is lower than the
 * setting when that is more than half of its slots.
 */
function flowOf(
  { concurrency: { floor, start, ceiling: setting }, nowMs }: HealthDeps,
  flow: EndpointFlow | null,
): Pick<Health, 'concurrency' | 'ratePerSecond' | 'pausedUntil'> {
  const pausedUntilMs = flow?.heldUntilMs ?? 0;
  const ceiling = flow?.ceiling ?? setting;
  return {
    concurrency: { now: flow?.concurrency ?? Math.min(start, ceiling), floor, ceiling },
    ratePerSecond: flow?.ratePerSecond ?? null,
    pausedUntil: pausedUntilMs > nowMs() ? new Date(pausedUntilMs).toISOString() : null,
  };
}

type Figures = Pick<Health, 'successRate' | 'latencyMs' | 'lastAttemptAt'>;

function figuresOf(attempts: readonly AttemptFigures[]): Figures {
  const durations = attempts.map(({ durationMs }) => durationMs).sort((a, b) => a - b);
  const succeeded = attempts.filter(({ outcome }) => outcome === 'success').length;
  const lastMs = Math.max(0, ...attempts.map(({ startedAt }) => startedAt.getTime()));
  return {
    lastAttemptAt: lastMs === 0 ? null : new Date(lastMs).toISOString(),
    successRate: attempts.length === 0 ? null : succeeded / attempts.length,
    latencyMs: { p50: percentile(durations, 0.5), p95: percentile(durations, 0.95) },
  };
}

/** Nearest rank; null when there is nothing to rank. */
function percentile(ascending: readonly number[], share: number): number | null {
  return ascending[Math.ceil(ascending.length * share) - 1] ?? null;
}
