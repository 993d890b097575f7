import { createDeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createSequenceStore } from '@posthorn/platform/mongo/messages/sequences.ts';
import { createWaitingDeliveries } from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import { createWebhookStates } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { createHoldStates } from '@posthorn/platform/mongo/webhooks/holds.ts';
import type { Loop } from '@posthorn/platform/async/loop.ts';
import type { ClaimedWork } from '@posthorn/platform/work/claimed-work.ts';
import { createLookAtSequences } from '../../../services/retry/src/look-at-sequences.ts';
import { createPageBudget } from '../../../services/retry/src/work/page-budget.ts';
import { createReleases } from '../../../services/retry/src/work/release.ts';
import { createWaitingSweep } from '../../../services/retry/src/sweep/sweep-waiting.ts';
import type { SimulatedHolds } from '../infrastructure/simulated-holds.ts';
import type { SimulatedPublishers } from '../infrastructure/simulated-publishers.ts';
import { LOGGER } from '../world/silent-logger.ts';
import { TOPICS } from '../world/world.ts';
import type { ServiceDeps } from './simulated-dispatcher.ts';

const MIB = 1_048_576;

/** Returns the real releases of a retry service, without Redis. */
export function createSimulatedReleases(
  { world, process, db, records }: ServiceDeps,
  holds: SimulatedHolds,
): ClaimedWork {
  const { notes, isHeld } = holds.connectedTo(process);
  const { holdersOf } = createHoldStates(db);
  const hold = { sinceMs: 0, untilMs: null, reason: null, by: 'key_1' };
  return createReleases({
    notes,
    waiting: createWaitingDeliveries(db),
    holds: {
      holdersOf,
      holdOf: async ({ id }) => ((await isHeld(id)) ? hold : null),
      isSuspended: () => Promise.resolve(false),
      clearEnded: () => Promise.resolve(false),
      webhooksOfApp: () => Promise.resolve([]),
    },
    deliveries: createDeliveryStore(db),
    sequences: createSequenceStore(db),
    circuits: { read: () => Promise.resolve(null) },
    records,
    retryDueTopic: TOPICS.retryDue,
    pageBudget: createPageBudget(MIB),
    count: () => undefined,
    resends: { continueHeld: () => Promise.resolve(false) },
    // No client changes the order of a webhook.
    freeKeys: () => Promise.resolve(),
    wakeResends: () => undefined,
    invalidate: () => Promise.resolve(),
    newClaim: () => `${process.name}/${world.random.below(1_000_000_000)}`,
    nowMs: process.nowMs,
    earlierMs: process.nowMs,
    sleep: (ms, signal) =>
      new Promise<void>((resolve, reject) => {
        // A crashed process waits for ever.
        world.time.after(ms, () => {
          if (process.isAlive()) resolve();
        });
        signal.addEventListener('abort', () => {
          reject(signal.reason as Error);
        });
      }),
    logger: LOGGER,
  });
}

/** Returns the real looks at ordering keys of the retry service. */
export function createSimulatedLooks(
  { world, process, db, records }: ServiceDeps,
  publishers: SimulatedPublishers,
): Loop {
  return createLookAtSequences({
    holder: process.name,
    leases: publishers.connectedTo(process).leases,
    sequences: {
      ...createSequenceStore(db),
      estimate: () => Promise.resolve({ all: 0, blocked: 0 }),
    },
    waiting: createWaitingDeliveries(db),
    webhooks: createWebhookStates(db),
    records,
    retryDueTopic: TOPICS.retryDue,
    report: () => undefined,
    metrics: { onLate: () => undefined, onCounted: () => undefined },
    nowMs: process.nowMs,
    monotonicMs: world.time.nowMs,
    logger: LOGGER,
  });
}

/** Returns the real sweep of the retry service. */
export function createSimulatedWaitingSweep(
  { process, db }: ServiceDeps,
  holds: SimulatedHolds,
  publishers: SimulatedPublishers,
): Loop {
  const { notes, allWebhooks } = holds.connectedTo(process);
  return createWaitingSweep({
    holder: process.name,
    leases: publishers.connectedTo(process).leases,
    waiting: { allWebhooks, expire: () => Promise.resolve(0) },
    notes,
    holds: createHoldStates(db),
    metrics: {
      onExpired: () => undefined,
      onOldestHold: () => undefined,
      onUnreleased: () => undefined,
    },
    nowMs: process.nowMs,
    earlierMs: process.nowMs,
    logger: LOGGER,
  });
}
