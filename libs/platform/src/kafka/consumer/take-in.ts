import type { ContiguousOffsets } from '../positions/contiguous-offsets.ts';
import { keepTrying } from '../../async/keep-trying.ts';
import type { Logger } from '../../service/logger.ts';
import type { FetchedBatch, FetchedMessage } from './fetched-batch.ts';
import type { KafkaMetrics } from '../kafka-metrics.ts';
import {
  hasRoomFor,
  MAX_HELD,
  type OwnedPartition,
  type PartitionWindow,
} from '../positions/partition-window.ts';
import type { Pauses } from '../positions/pauses.ts';
import { contentOf } from '../record-content.ts';
import type { ConsumeOptions, LogRecord } from '../record-log.ts';

export interface Intake extends Pick<
  ConsumeOptions,
  'handle' | 'postponeMs' | 'window' | 'mayRead'
> {
  offsets: PartitionWindow;
  pauses: Pauses;
  logger: Logger;
  metrics: KafkaMetrics;
  /** Aborted when nothing more is to be taken in. */
  draining: AbortSignal;
}

/** Begins the work on a batch and returns at once. Never throws: a TypeError would end the consumer. */
export function takeIn(intake: Intake, payload: FetchedBatch): void {
  const { topic, partition, messages, highWatermark } = payload.batch;
  const { offsets, pauses, metrics } = intake;
  const first = messages[0];
  if (!first) return;
  const endOffset = Number(highWatermark);
  const owned = offsets.arrive(topic, partition, { firstOffset: Number(first.offset), endOffset });
  if (!owned) return;
  if (intake.draining.aborted) {
    pauses.holdBack(topic, partition);
    return;
  }
  metrics.consumed.inc({ topic }, takeMessages(intake, payload, owned));
  metrics.setLag(topic, partition, endOffset - (owned.offsets.committable() ?? owned.resumesAt));
  goOn(intake, topic);
}

/** Answers how many records it took, up to where the window is full or the head is not due. */
function takeMessages(intake: Intake, payload: FetchedBatch, owned: OwnedPartition): number {
  const { topic, partition } = owned;
  let taken = 0;
  for (const message of payload.batch.messages) {
    const record = toRecord(owned, message);
    if (isFull(intake, owned, record.offset)) {
      intake.pauses.holdBack(topic, partition);
      break;
    }
    const postponeMs = intake.postponeMs?.(record, Number(payload.batch.highWatermark)) ?? 0;
    if (postponeMs > 0) {
      intake.pauses.pauseFor(topic, partition, postponeMs);
      break;
    }
    if (owned.offsets.begin(record.offset)) {
      void work(intake, record, owned.offsets);
      taken += 1;
    }
    payload.resolveOffset(message.offset);
  }
  return taken;
}

function isFull(intake: Intake, owned: OwnedPartition, offset: number): boolean {
  const { offsets, window, mayRead } = intake;
  if (offsets.inFlightIn(owned.topic) >= window.high || !hasRoomFor(owned, offset)) return true;
  // With nothing under work nobody would ask again, so one record is always read.
  return mayRead?.() === false && offsets.inFlightIn(owned.topic) > 0;
}

/**
 * What rejects is a fault of ours, so it is tried again until it succeeds; a record is given up only
 * at a stop, uncommitted, and read again after the next start.
 */
async function work(intake: Intake, record: LogRecord, offsets: ContiguousOffsets): Promise<void> {
  const { topic, partition, offset } = record;
  const onFailure = (error: unknown): void => {
    intake.logger.error({ err: error, topic, partition, offset }, 'record failed, trying again');
  };
  try {
    await keepTrying(() => intake.handle(record), { signal: intake.draining, onFailure });
    offsets.finish(offset);
  } catch {
    offsets.abandon(offset);
  }
  goOn(intake, topic);
}

/** Reads on where the window has room again. */
export function goOn(intake: Intake, topic: string): void {
  const { offsets, pauses, window, draining } = intake;
  if (draining.aborted || offsets.inFlightIn(topic) > window.low) return;
  if (intake.mayRead?.() === false && offsets.inFlightIn(topic) > 0) return;
  pauses.letGo(
    (place) =>
      place.topic === topic && offsets.begunIn(place.topic, place.partition) < MAX_HELD / 2,
  );
}

function toRecord(
  { topic, partition, inheritedBelow }: OwnedPartition,
  message: FetchedMessage,
): LogRecord {
  const offset = Number(message.offset);
  return {
    topic,
    partition,
    offset,
    ...contentOf(message),
    isInherited: offset < inheritedBelow,
  };
}
