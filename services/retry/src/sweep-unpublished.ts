import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type { LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import type {
  PublisherStore,
  SweepCandidate,
} from '@posthorn/platform/mongo/messages/publishers.ts';
import {
  createdRecords,
  ONE_SEND,
  takeForOneSend,
} from '@posthorn/platform/outbox/created-records.ts';
import type { RetryMetrics } from './retry-metrics.ts';

export interface SweepDeps {
  /** Names this process as the holder of the lease. */
  holder: string;
  createdTopic: string;
  leases: LeaseStore;
  publishers: PublisherStore;
  messages: Pick<MessageStore, 'pageOf'>;
  deliveries: Pick<DeliveryStore, 'statesOf'>;
  log: RecordLog;
  metrics: RetryMetrics;
  logger: Logger;
}

export interface Sweeper {
  start: () => void;
  /** One round over all publishers that need it; nothing when another process holds the lease. */
  tick: () => Promise<void>;
  /** When the oldest message that was found unpublished was accepted, in milliseconds since 1970; null when none is left. */
  oldestAtMs: () => number | null;
  stop: () => Promise<void>;
}

interface Work extends SweepDeps {
  /** Publisher → when the oldest of its messages that waits for us was accepted. */
  waiting: Map<string, number>;
}

const LEASE = 'sweeper';
const LEASE_MS = 15_000;
const EVERY_MS = 2_000;
/** A gateway beats once a second; its driver may still deliver a last insert for some seconds. */
const STALE_MS = 10_000;
/** A living gateway gets this long to publish by itself. */
const BEHIND_MS = 60_000;
const FORGET_AFTER_MS = 60_000;
const PAGE = 200;

/**
 * Publishes what a gateway stored and did not publish: everything after its watermark that has no
 * delivery yet. Publish first, note the progress after: a crash repeats, and never skips.
 */
export function createSweeper(deps: SweepDeps): Sweeper {
  const work: Work = { ...deps, waiting: new Map() };
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | null = null;

  function tick(): Promise<void> {
    running ??= round(work).finally(() => {
      running = null;
    });
    return running;
  }

  return {
    start() {
      timer = setInterval(() => void tick(), EVERY_MS);
    },
    tick,
    oldestAtMs: () => (work.waiting.size > 0 ? Math.min(...work.waiting.values()) : null),
    async stop() {
      clearInterval(timer);
      await running;
      await deps.leases.release(LEASE, deps.holder).catch(() => undefined);
    },
  };
}

async function round(work: Work): Promise<void> {
  const { leases, publishers, holder, logger, waiting } = work;
  try {
    const isOurs = await leases.hold(LEASE, holder, LEASE_MS);
    const limits = { staleMs: STALE_MS, behindMs: BEHIND_MS };
    const candidates = isOurs ? await publishers.findToSweep(limits) : [];
    const names = new Set(candidates.map(({ _id }) => _id));
    for (const name of waiting.keys()) if (!names.has(name)) waiting.delete(name);
    for (const publisher of candidates) {
      // One publisher that cannot be swept must not keep the others waiting.
      await sweep(work, publisher).catch(reportTo(logger, publisher._id));
    }
  } catch (error) {
    reportTo(logger)(error);
  }
}

function reportTo(logger: Logger, publisherId?: string): (error: unknown) => void {
  return (error) => {
    logger.warn({ err: error, publisherId }, 'sweep failed, the next one follows');
  };
}

async function sweep(deps: Work, publisher: SweepCandidate): Promise<void> {
  const { _id: publisherId, watermark, sweptTo = '' } = publisher;
  let afterId = sweptTo > watermark ? sweptTo : watermark;
  for (;;) {
    if (!(await deps.leases.hold(LEASE, deps.holder, LEASE_MS))) return;
    const page = await deps.messages.pageOf({ publisherId, afterId, limit: PAGE });
    const last = page.at(-1);
    if (!last) break;
    await publishMissing(deps, publisherId, page);
    afterId = last.id;
    await deps.publishers.markSwept(publisherId, afterId);
  }
  await deps.publishers.forget(publisherId, FORGET_AFTER_MS);
}

async function publishMissing(
  deps: Work,
  publisherId: string,
  page: readonly Message[],
): Promise<void> {
  let rest = page;
  while (rest.length > 0) {
    const batch = takeForOneSend(rest, ONE_SEND);
    const missing = await withoutDelivery(deps, batch);
    const [oldest] = missing;
    if (oldest) deps.waiting.set(publisherId, oldest.createdAtMs);
    const records = missing.flatMap((message) => createdRecords(deps.createdTopic, message));
    await deps.log.publish(records);
    deps.waiting.delete(publisherId);
    deps.metrics.swept.inc(records.length);
    if (records.length > 0) deps.logger.info({ publisherId, records: records.length }, 'swept');
    rest = rest.slice(batch.length);
  }
}

/** The messages with only those of their targets that have no delivery yet: the others were published. */
async function withoutDelivery({ deliveries }: SweepDeps, batch: readonly Message[]) {
  const ids = batch.flatMap(({ id, targets }) => targets.map((target) => deliveryIdOf(id, target)));
  const known = await deliveries.statesOf(ids);
  return batch
    .map((message) => {
      const targets = message.targets.filter((to) => !known.has(deliveryIdOf(message.id, to)));
      return { ...message, targets };
    })
    .filter(({ targets }) => targets.length > 0);
}
