import { fateOfWaiting } from '@posthorn/domain/delivery/when-cancelled.ts';
import type { Loop } from '@posthorn/platform/async/loop.ts';
import type { DatabaseTime } from '@posthorn/platform/mongo/database-time.ts';
import type {
  WaitingDeliveries,
  WaitingWebhook,
} from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type { HoldNotes, HoldStates } from '@posthorn/platform/mongo/webhooks/holds.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import {
  createLeasedLoop,
  type KeepLease,
  type LeaseHolder,
} from '@posthorn/platform/work/leased-loop.ts';
import { Counter, Gauge, type Registry } from 'prom-client';

interface WaitingSweepDeps extends LeaseHolder, Pick<DatabaseTime, 'nowMs' | 'earlierMs'> {
  waiting: Pick<WaitingDeliveries, 'allWebhooks' | 'expire'>;
  notes: Pick<HoldNotes, 'touch' | 'hasAny' | 'oldestMs'>;
  holds: Pick<HoldStates, 'holdersOf'>;
  metrics: WaitingMetrics;
  logger: Logger;
}

export interface WaitingMetrics {
  onExpired: (deliveries: number) => void;
  /** Since when the hold lasts that nobody has ended for the longest, in milliseconds since 1970; null without one. */
  onOldestHold: (sinceMs: number | null) => void;
  /** Since when a delivery could be released that still waits; null without one. */
  onUnreleased: (sinceMs: number | null) => void;
}

const EVERY_MS = 300_000;
const EXPIRED_AT_ONCE = 1_000;
const WEBHOOKS_AT_ONCE = 500;

/**
 * Finds what the notes of holds do not cover, by one process at a time. Deliveries that wait although nothing holds them:
 * a dispatcher recorded them after the last look at the note, as when it or MongoDB was frozen for a minute. Their
 * webhook gets a note, by which they are released. And deliveries that would expire within a day: they are cancelled, so
 * that their end is seen.
 */
export function createWaitingSweep(deps: WaitingSweepDeps): Loop {
  const { notes, metrics } = deps;
  let unreleased: Unreleased = new Map();
  return createLeasedLoop({
    ...deps,
    name: 'sweep of waiting deliveries',
    lease: 'waiting-deliveries',
    everyMs: EVERY_MS,
    startsAtOnce: true,
    async run(keep) {
      metrics.onOldestHold(await notes.oldestMs());
      // Shown by the process that sweeps now, unless it is this one.
      metrics.onUnreleased(null);
      if (!(await keep())) return;
      await expireAll(deps, keep);
      unreleased = await findForgotten(deps, unreleased, keep);
      const sinceMs = [...unreleased.values()].map((each) => each.sinceMs);
      metrics.onUnreleased(sinceMs.reduce<number | null>((a, b) => Math.min(a ?? b, b), null));
    },
  });
}

async function expireAll(
  { waiting, metrics, earlierMs, logger }: WaitingSweepDeps,
  keep: KeepLease,
): Promise<void> {
  let expired = 0;
  while (await keep()) {
    const some = await waiting.expire(earlierMs(), EXPIRED_AT_ONCE);
    if (some === 0) break;
    expired += some;
    metrics.onExpired(some);
  }
  if (expired === 0) return;
  logger.warn(
    { deliveries: expired },
    'cancelled deliveries that waited until one day before they expire',
  );
}

/**
 * For each webhook that is not on hold: the delivery that its release continues with, and when this process first found
 * it. A slow release moves on to another delivery between two sweeps, so a delivery that stays is not being released.
 */
type Unreleased = Map<string, { firstId: string; sinceMs: number }>;

/** Returns what is known now; `seen` is what was at the sweep before. */
async function findForgotten(
  deps: WaitingSweepDeps,
  seen: Unreleased,
  keep: KeepLease,
): Promise<Unreleased> {
  const found: Unreleased = new Map();
  const check = async (some: readonly WaitingWebhook[]): Promise<void> => {
    const atMs = deps.nowMs();
    for (const { webhookId, firstId } of await noteForgotten(deps, some, atMs)) {
      const before = seen.get(webhookId);
      const sinceMs = before?.firstId === firstId ? before.sinceMs : atMs;
      // Of its oldest day, which comes first.
      if (!found.has(webhookId)) found.set(webhookId, { firstId, sinceMs });
    }
  };
  let some: WaitingWebhook[] = [];
  for await (const webhook of deps.waiting.allWebhooks()) {
    some.push(webhook);
    if (some.length < WEBHOOKS_AT_ONCE) continue;
    await check(some);
    some = [];
    if (!(await keep())) return seen;
  }
  if (some.length > 0) await check(some);
  return found;
}

/** Gives a note to each webhook that nothing holds and no note covers. Returns those that nothing holds. */
async function noteForgotten(
  { holds, notes, logger }: WaitingSweepDeps,
  webhooks: readonly WaitingWebhook[],
  atMs: number,
): Promise<WaitingWebhook[]> {
  const holders = await holds.holdersOf(webhooks);
  const free: WaitingWebhook[] = [];
  for (const webhook of webhooks) {
    const { webhookId: id, companyId } = webhook;
    const known = holders.get(id) ?? { webhook: null, appHeld: null, isSuspended: false };
    if (fateOfWaiting(known, atMs).kind === 'wait') continue;
    free.push(webhook);
    // A webhook with a note is released, or will be.
    if (await notes.hasAny([id, companyId, ...(known.webhook?.appId ? [known.webhook.appId] : [])]))
      continue;
    await notes.touch({ id, companyId, kind: 'webhook' }, { atMs, dueAtMs: atMs });
    logger.info({ webhookId: id, companyId }, 'deliveries wait although nothing holds them');
  }
  return free;
}

export function createWaitingMetrics(registry: Registry, nowMs: () => number): WaitingMetrics {
  const expired = new Counter({
    name: 'posthorn_waiting_expired_total',
    help: 'Deliveries that were cancelled because they still waited one day before they would have expired.',
    registers: [registry],
  });
  let oldestMs: number | null = null;
  let unreleasedMs: number | null = null;
  const age = (sinceMs: number | null): number => {
    const now = nowMs();
    return Math.max(0, now - (sinceMs ?? now)) / 1_000;
  };
  new Gauge({
    name: 'posthorn_hold_oldest_seconds',
    help: 'Time since the hold of a webhook or an app was begun or changed that does not end by itself and that nobody has ended for the longest, as last seen by this process; 0 without one.',
    registers: [registry],
    collect() {
      this.set(age(oldestMs));
    },
  });
  new Gauge({
    name: 'posthorn_waiting_unreleased_seconds',
    help: 'For how long this process has seen a waiting delivery be the next one to be released of a webhook that nothing holds; 0 without one.',
    registers: [registry],
    collect() {
      this.set(age(unreleasedMs));
    },
  });
  return {
    onExpired(deliveries) {
      expired.inc(deliveries);
    },
    onOldestHold(sinceMs) {
      oldestMs = sinceMs;
    },
    onUnreleased(sinceMs) {
      unreleasedMs = sinceMs;
    },
  };
}
