import type { DeliveryState } from '@posthorn/domain/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { createLoop, type Loop } from '@posthorn/platform/async/loop.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
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
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { RetryMetrics } from '../retry-metrics.ts';

export interface SweepUnpublishedDeps {
  /** Names this process as the holder of the lease. */
  holder: string;
  createdTopic: string;
  leases: LeaseStore;
  publishers: Pick<PublisherStore, 'findToSweep' | 'markSwept' | 'forget'>;
  messages: Pick<MessageStore, 'pageOf'>;
  deliveries: Pick<DeliveryStore, 'statesOf'>;
  records: Pick<RecordLog, 'publish'>;
  metrics: Pick<RetryMetrics, 'swept'>;
  logger: Logger;
}

export interface UnpublishedSweep extends Loop {
  /**
   * When the oldest message that was found unpublished was accepted, in milliseconds since 1970; null
   * when there is none.
   */
  oldestAtMs: () => number | null;
}

interface Work extends SweepUnpublishedDeps {
  /** By publisher: when the oldest of its messages that is to be published here was accepted. */
  oldestAtMs: Map<string, number>;
}

const LEASE = 'sweeper';
const EVERY_MS = 2_000;
/** A gateway's heartbeat comes every second; after the last one its driver may still insert for some seconds. */
const STALE_MS = 10_000;
/** A gateway that is alive has this long to publish a message itself. */
const BEHIND_MS = 60_000;
const FORGET_AFTER_MS = 60_000;
const PAGE = 200;

/**
 * Publishes what a gateway stored and did not publish: everything after its watermark that has no
 * delivery yet. It publishes first and stores its progress afterwards, so that a crash repeats a step
 * and never skips one. A tick does nothing while another process holds the lease.
 */
export function createUnpublishedSweep(deps: SweepUnpublishedDeps): UnpublishedSweep {
  const work: Work = { ...deps, oldestAtMs: new Map() };
  const loop = createLoop({
    name: 'sweep of unpublished messages',
    everyMs: EVERY_MS,
    run: () => sweepAll(work),
    logger: deps.logger,
  });
  return {
    start: loop.start,
    tick: loop.tick,
    oldestAtMs: () => (work.oldestAtMs.size > 0 ? Math.min(...work.oldestAtMs.values()) : null),
    async stop() {
      await loop.stop();
      await deps.leases.release(LEASE, deps.holder).catch(() => undefined);
    },
  };
}

async function sweepAll(work: Work): Promise<void> {
  const { leases, publishers, holder, logger, oldestAtMs } = work;
  const isHeld = await leases.hold(LEASE, holder);
  const limits = { staleMs: STALE_MS, behindMs: BEHIND_MS };
  const candidates = isHeld ? await publishers.findToSweep(limits) : [];
  const ids = new Set(candidates.map(({ id }) => id));
  for (const id of oldestAtMs.keys()) if (!ids.has(id)) oldestAtMs.delete(id);
  for (const publisher of candidates) {
    // A publisher that cannot be swept must not stop the others.
    await sweepPublisher(work, publisher).catch((error: unknown) => {
      logger.warn(
        { err: error, publisherId: publisher.id },
        'cannot sweep a publisher, will retry',
      );
    });
  }
}

async function sweepPublisher(work: Work, publisher: SweepCandidate): Promise<void> {
  const { id: publisherId, watermark, sweptTo } = publisher;
  let afterId = sweptTo > watermark ? sweptTo : watermark;
  for (;;) {
    if (!(await work.leases.hold(LEASE, work.holder))) return;
    const page = await work.messages.pageOf({ publisherId, afterId, limit: PAGE });
    const last = page.at(-1);
    if (!last) break;
    await publishMissing(work, publisherId, page);
    afterId = last.id;
    await work.publishers.markSwept(publisherId, afterId);
  }
  await work.publishers.forget(publisherId, FORGET_AFTER_MS);
}

async function publishMissing(
  work: Work,
  publisherId: string,
  page: readonly Message[],
): Promise<void> {
  let rest = page;
  while (rest.length > 0) {
    const batch = takeForOneSend(rest, ONE_SEND);
    const recorded = await work.deliveries.statesOf(deliveryIdsOf(batch));
    const missing = unpublishedAmong(batch, recorded);
    const [oldest] = missing;
    if (oldest) work.oldestAtMs.set(publisherId, oldest.createdAtMs);
    const created = missing.flatMap((message) => createdRecords(work.createdTopic, message));
    await work.records.publish(created);
    work.oldestAtMs.delete(publisherId);
    work.metrics.swept.inc(created.length);
    if (created.length > 0) {
      work.logger.info(
        { publisherId, records: created.length },
        'published messages that their gateway did not publish',
      );
    }
    rest = rest.slice(batch.length);
  }
}

function deliveryIdsOf(batch: readonly Message[]): string[] {
  return batch.flatMap(({ id, targets }) => targets.map((target) => deliveryIdOf(id, target)));
}

/** The messages with only those targets whose delivery is not recorded: the others were published. */
function unpublishedAmong(
  batch: readonly Message[],
  recorded: ReadonlyMap<string, DeliveryState>,
): Message[] {
  return batch
    .map((message) => {
      const isMissing = (target: string) => !recorded.has(deliveryIdOf(message.id, target));
      return { ...message, targets: message.targets.filter(isMissing) };
    })
    .filter(({ targets }) => targets.length > 0);
}
