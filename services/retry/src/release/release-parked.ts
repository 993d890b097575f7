import type { CancelReason } from '@posthorn/domain/message/delivery.ts';
import { logFieldsOf } from '@posthorn/domain/records/log-fields.ts';
import { DUE_AT_HEADER, readMs, TURN_AT_HEADER } from '@posthorn/domain/records/record-headers.ts';
import {
  decodeRetryDue,
  readRecord,
  UnreadableRecordError,
  type DueAttempt,
} from '@posthorn/domain/records/records.ts';
import type { DelayTopic } from '@posthorn/domain/records/topics.ts';
import { required } from '@posthorn/domain/required.ts';
import {
  decideRelease,
  type ReleaseDecision,
} from '@posthorn/domain/delivery-lifecycle/when-released.ts';
import { createBatcher } from '@posthorn/platform/async/batching/batcher.ts';
import type { DeadLetters } from '@posthorn/platform/dead-letters/dead-letters.ts';
import type {
  ConsumeOptions,
  IsOurs,
  LogRecord,
  OutgoingRecord,
  RecordLog,
} from '@posthorn/platform/kafka/record-log.ts';
import { StoppedError, type KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type { WebhookStates } from '@posthorn/platform/mongo/webhooks/webhook-states.ts';
import type { MarkBacklogs } from './mark-backlogs.ts';
import { isPlausibleTime, waitUntilDue } from './wait-until-due.ts';
import type { LatestRelease } from './latest-release.ts';
import type { RetryMetrics } from '../retry-metrics.ts';
import type { OverdueWatch } from './watch-overdue.ts';

export interface ReleaseDeps {
  retryDueTopic: string;
  /** The topics that are read, by name. */
  delayTopics: ReadonlyMap<string, DelayTopic>;
  records: Pick<RecordLog, 'publish'>;
  deliveries: Pick<DeliveryStore, 'statesOf' | 'cancelPending'>;
  webhooks: Pick<WebhookStates, 'statesOf'>;
  markBacklogs: MarkBacklogs;
  deadLetters: DeadLetters;
  keepTrying: KeepTrying;
  overdue: Pick<OverdueWatch, 'begin'>;
  metrics: RetryMetrics;
  logger: Pick<Logger, 'info'>;
  nowMs: () => number;
  monotonicMs: () => number;
  latestRelease: LatestRelease;
}

/** A parked or deferred record, and the attempt that it asks for. */
interface Parked {
  record: LogRecord;
  due: DueAttempt;
  isOurs: IsOurs;
}

interface Decided extends Parked {
  decision: ReleaseDecision;
}

interface Cancelled {
  due: DueAttempt;
  reason: CancelReason;
}

const BATCH = { maxItems: 500, lingerMs: 2, maxInFlight: 2 };

/**
 * Release: publishes a parked or deferred record to `retry-due` when it is due, unless its
 * delivery has moved on or its webhook was deleted or disabled. Resolves when Kafka has the record, or
 * when the cancellation is stored; only then may its offset be committed. A record whose partition has
 * gone to another retry service meanwhile is released there; rejects with StoppedError here.
 */
export function createReleaseParked(deps: ReleaseDeps): ConsumeOptions['handle'] {
  const batcher = createBatcher<Parked, 'done' | 'left'>({
    ...BATCH,
    run: async (batch) => {
      const left = await releaseBatch(deps, batch);
      return batch.map((parked) => (left.has(parked.record) ? 'left' : 'done'));
    },
  });
  return async (record, isOurs) => {
    const due = readRecord(() => read(record));
    if (due instanceof UnreadableRecordError) {
      await deps.keepTrying('publish a dead letter', () =>
        deps.deadLetters.put(record, 'unreadable_record', due.message),
      );
      return;
    }
    const end = deps.overdue.begin(record.topic, due.dueAtMs);
    try {
      await waitUntilDue(due.dueAtMs, () => deps.latestRelease(record), deps);
      const outcome = isOurs() ? await batcher.add({ record, due, isOurs }) : 'left';
      if (outcome === 'left') throw new StoppedError('its partition has gone to another process');
    } finally {
      end();
    }
  };
}

function read(record: LogRecord): DueAttempt {
  const due = decodeRetryDue(record.value);
  if (readMs(record.headers, DUE_AT_HEADER) !== due.dueAtMs) {
    throw new UnreadableRecordError('header due-at and dueAtMs differ');
  }
  if (!isPlausibleTime(due.dueAtMs)) throw new UnreadableRecordError('due after the year 2099');
  return due;
}

/** Returns the records that are left to other processes. */
async function releaseBatch(
  deps: ReleaseDeps,
  batch: readonly Parked[],
): Promise<ReadonlySet<LogRecord>> {
  const cancelled: Cancelled[] = [];
  const released: Parked[] = [];
  const seen = new Set<string>();
  for (const { decision, ...parked } of await decideAll(deps, batch)) {
    const { due } = parked;
    // After a crash one failure may be parked twice.
    if (decision.kind === 'drop' || seen.has(due.attemptId)) continue;
    seen.add(due.attemptId);
    switch (decision.kind) {
      case 'release':
        released.push(parked);
        break;
      case 'cancel':
        cancelled.push({ due, reason: decision.reason });
        break;
    }
  }
  if (cancelled.length > 0) await cancel(deps, cancelled);
  deps.markBacklogs(released);
  return release(deps, released);
}

/** Asks before each try: partitions change hands in the outages that make it wait. Returns the records that it left. */
async function release(
  deps: ReleaseDeps,
  released: readonly Parked[],
): Promise<ReadonlySet<LogRecord>> {
  const { records, keepTrying, delayTopics, metrics, nowMs } = deps;
  let ours: Parked[] = [];
  await keepTrying('publish released records', () => {
    ours = released.filter(({ isOurs }) => isOurs());
    return records.publish(ours.map((parked) => toRetryDue(deps, parked)));
  });
  for (const { record, due } of ours) {
    const topic = required(delayTopics, record.topic, 'delay topic');
    metrics.observeLateness(topic, nowMs() - due.dueAtMs);
  }
  const left = new Set(released.map(({ record }) => record));
  for (const { record } of ours) left.delete(record);
  return left;
}

async function decideAll(
  { deliveries, webhooks, keepTrying }: ReleaseDeps,
  batch: readonly Parked[],
): Promise<Decided[]> {
  const deliveryIds = batch.map(({ due }) => due.deliveryId);
  const webhookIds = [...new Set(batch.map(({ due }) => due.webhookId))];
  const [deliveryStates, webhookStates] = await Promise.all([
    keepTrying('look up deliveries', () => deliveries.statesOf(deliveryIds)),
    keepTrying('look up webhooks', () => webhooks.statesOf(webhookIds)),
  ]);
  return batch.map((parked) => {
    const { record, due } = parked;
    const isDeferred = record.headers[TURN_AT_HEADER] !== undefined;
    const delivery = deliveryStates.get(due.deliveryId);
    const webhook = webhookStates.get(due.webhookId);
    return { ...parked, decision: decideRelease({ due, isDeferred, delivery, webhook }) };
  });
}

async function cancel(
  { deliveries, keepTrying, metrics, logger, nowMs }: ReleaseDeps,
  cancelled: readonly Cancelled[],
): Promise<void> {
  const atMs = nowMs();
  const cancellations = cancelled.map(({ due, reason }) => ({ id: due.deliveryId, reason, atMs }));
  await keepTrying('cancel deliveries', () => deliveries.cancelPending(cancellations));
  metrics.finished.inc({ result: 'cancelled' }, cancelled.length);
  for (const { due, reason } of cancelled) {
    logger.info({ ...logFieldsOf(due), reason }, 'delivery cancelled');
  }
}

function toRetryDue({ retryDueTopic }: ReleaseDeps, { record }: Parked): OutgoingRecord {
  const { key, value, headers } = record;
  return { topic: retryDueTopic, key, value, headers };
}
