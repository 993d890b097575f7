import {
  decodeRetryDue,
  readRecord,
  TURN_AT_HEADER,
  UnreadableRecordError,
  type DueAttempt,
} from '@posthorn/domain/records/records.ts';
import { decideRelease, type ReleaseDecision } from '@posthorn/domain/release-decision.ts';
import type { DelayTopic } from '@posthorn/domain/records/topics.ts';
import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import type { DeadLetters } from '@posthorn/platform/dead-letters/dead-letters.ts';
import type { LogRecord, OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { keepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type {
  Cancellation,
  DeliveryStore,
} from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type { WebhookStates } from '@posthorn/platform/mongo/webhooks/webhook-states.ts';
import { dueAtOf, holdUntilDue, isPlausible } from './hold-until-due.ts';
import type { LatestRelease } from './latest-release.ts';
import type { RetryMetrics } from '../retry-metrics.ts';
import type { OverdueWatch } from './watch-overdue.ts';

export interface ReleaseDeps {
  retryDueTopic: string;
  /** By name: the kind and the delay of each topic that is read. */
  delayTopics: ReadonlyMap<string, DelayTopic>;
  log: Pick<RecordLog, 'publish'>;
  deliveries: Pick<DeliveryStore, 'statesOf' | 'cancelPending'>;
  webhooks: WebhookStates;
  deadLetters: DeadLetters;
  overdue: Pick<OverdueWatch, 'begin'>;
  metrics: RetryMetrics;
  logger: Pick<Logger, 'info'>;
  nowMs: () => number;
  monotonicMs: () => number;
  latestRelease: LatestRelease;
}

interface Parked {
  record: LogRecord;
  due: DueAttempt;
}

const BATCH = { maxItems: 500, lingerMs: 2, maxInFlight: 2 };

/**
 * Step 5, release: when a parked or deferred record is due it goes to `retry-due`, unless its delivery
 * has moved on meanwhile or its webhook is gone. Resolves when Kafka has it, or when the end is stored; only
 * then may its offset be committed.
 */
export function createReleaseParked(deps: ReleaseDeps): (record: LogRecord) => Promise<void> {
  const release = createBatcher<Parked, undefined>({
    ...BATCH,
    run: async (batch) => {
      await releaseBatch(deps, batch);
      return batch.map(() => undefined);
    },
  });
  return async (record) => {
    const due = readRecord(() => read(record));
    if (due instanceof UnreadableRecordError) {
      await keepTrying(() => deps.deadLetters.put(record, 'unreadable_record', due.message));
      return;
    }
    const end = deps.overdue.begin(record.topic, due.dueAtMs);
    try {
      await holdUntilDue(due.dueAtMs, () => deps.latestRelease(record), deps);
      await release.add({ record, due });
    } finally {
      end();
    }
  };
}

function read(record: LogRecord): DueAttempt {
  const due = decodeRetryDue(record.value);
  if (dueAtOf(record) !== due.dueAtMs) {
    throw new UnreadableRecordError('header due-at and dueAtMs differ');
  }
  if (!isPlausible(due.dueAtMs)) throw new UnreadableRecordError('due beyond the year 2100');
  return due;
}

async function releaseBatch(deps: ReleaseDeps, batch: readonly Parked[]): Promise<void> {
  const decisions = await decideAll(deps, batch);
  const cancelled: { due: DueAttempt; reason: Cancellation['reason'] }[] = [];
  const released: Parked[] = [];
  const taken = new Set<string>();
  for (const [index, parked] of batch.entries()) {
    const decision = decisions[index] ?? 'drop';
    // A crash may have parked one failure twice.
    if (decision === 'drop' || taken.has(parked.due.attemptId)) continue;
    taken.add(parked.due.attemptId);
    if (decision === 'release') released.push(parked);
    else cancelled.push({ due: parked.due, reason: decision });
  }
  if (cancelled.length > 0) await cancel(deps, cancelled);
  await keepTrying(() => deps.log.publish(released.map((parked) => toRetryDue(deps, parked))));
  for (const { record, due } of released) {
    const topic = deps.delayTopics.get(record.topic);
    if (topic) deps.metrics.observeLateness(topic, deps.nowMs() - due.dueAtMs);
  }
}

async function decideAll(
  { deliveries, webhooks }: ReleaseDeps,
  batch: readonly Parked[],
): Promise<ReleaseDecision[]> {
  const deliveryIds = batch.map(({ due }) => due.deliveryId);
  const webhookIds = [...new Set(batch.map(({ due }) => due.webhookId))];
  const [deliveryStates, webhookStates] = await Promise.all([
    keepTrying(() => deliveries.statesOf(deliveryIds)),
    keepTrying(() => webhooks.statesOf(webhookIds)),
  ]);
  return batch.map(({ record, due }) => {
    const isPutOff = record.headers[TURN_AT_HEADER] !== undefined;
    const delivery = deliveryStates.get(due.deliveryId);
    const webhook = webhookStates.get(due.webhookId);
    return decideRelease({ due, isPutOff, delivery, webhook });
  });
}

async function cancel(
  { deliveries, metrics, logger, nowMs }: ReleaseDeps,
  cancelled: readonly { due: DueAttempt; reason: Cancellation['reason'] }[],
): Promise<void> {
  const atMs = nowMs();
  const cancellations = cancelled.map(({ due, reason }) => ({ id: due.deliveryId, reason, atMs }));
  await keepTrying(() => deliveries.cancelPending(cancellations));
  metrics.finished.inc({ result: 'cancelled' }, cancelled.length);
  for (const { due, reason } of cancelled) {
    const { messageId, deliveryId } = due;
    logger.info({ messageId, deliveryId, reason }, 'delivery cancelled');
  }
}

function toRetryDue({ retryDueTopic }: ReleaseDeps, { record }: Parked): OutgoingRecord {
  const { key, value, headers } = record;
  return { topic: retryDueTopic, key, value, headers };
}
