import { releasedRecord } from '@posthorn/domain/records/retry-due.ts';
import type { Loop } from '@posthorn/platform/async/loop.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type {
  WaitingDelivery,
  WaitingDeliveries,
} from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { createLeasedLoop, type LeaseHolder } from '@posthorn/platform/work/leased-loop.ts';
import { Gauge, type Registry } from 'prom-client';

interface ReleaseTimedDeps extends LeaseHolder {
  waiting: Pick<WaitingDeliveries, 'dueAt' | 'endWait'>;
  records: Pick<RecordLog, 'publish'>;
  retryDueTopic: string;
  metrics: TimedMetrics;
  /** The time of the database. */
  nowMs: () => number;
  monotonicMs: () => number;
  logger: Logger;
}

export interface TimedMetrics {
  /** How late the delivery is that has been due for the longest, in milliseconds; 0 when none is due. */
  onLate: (ms: number) => void;
}

/** An attempt begins within a second after its time. */
const EVERY_MS = 500;
/** Of each day at once. */
const PAGE = 500;
/**
 * 20,000 a second at most: more would wait for their endpoints in Kafka instead. Measured on two busy cores beside the
 * stores, with 30,000 of one company due: six pages or 3,000 deliveries a second, those of 200 other companies within
 * 0.5 s; a look that finds nothing took 2.5 ms.
 */
const PAGES_PER_TICK = 20;

/**
 * Releases the deliveries whose message is to be delivered now (`deliverAt`), by one process at a time: publishes the
 * attempts of a page, then ends the wait of these. After a crash in between the page is published again, and the
 * dispatcher looks up what is recorded before it makes such an attempt.
 */
export function createReleaseTimed(deps: ReleaseTimedDeps): Loop {
  const { metrics } = deps;
  return createLeasedLoop({
    ...deps,
    name: 'release at the time of messages',
    lease: 'timed-deliveries',
    keepsLease: true,
    everyMs: EVERY_MS,
    async run(keep, signal) {
      for (let pages = 0; pages < PAGES_PER_TICK && !signal.aborted; pages += 1) {
        if (!(await keep())) {
          // The process that has it shows how late they are.
          metrics.onLate(0);
          return;
        }
        if (!(await releasePage(deps))) return;
      }
    },
  });
}

/** Returns false when nothing was due. */
async function releasePage(deps: ReleaseTimedDeps): Promise<boolean> {
  const { waiting, records, retryDueTopic, metrics, nowMs } = deps;
  const atMs = nowMs();
  const page = await waiting.dueAt(atMs, PAGE);
  metrics.onLate(page.reduce((most, { dueAtMs }) => Math.max(most, atMs - dueAtMs), 0));
  if (page.length === 0) return false;
  const toRecord = (each: WaitingDelivery): OutgoingRecord => ({
    topic: retryDueTopic,
    ...releasedRecord({ ...each, deliverAtMs: each.dueAtMs }, atMs),
  });
  await records.publish(page.map(toRecord));
  await waiting.endWait(page, nowMs());
  return true;
}

export function createTimedMetrics(registry: Registry): TimedMetrics {
  const late = new Gauge({
    name: 'posthorn_deliver_at_late_seconds',
    help: 'For how long the delivery has been due that waits the longest after the time of its message, as last seen by this process; 0 without one, and while another process releases them.',
    registers: [registry],
  });
  late.set(0);
  return {
    onLate(ms) {
      late.set(ms / 1_000);
    },
  };
}
