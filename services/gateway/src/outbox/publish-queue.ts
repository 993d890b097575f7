import { charsOfMessage, type Message } from '@posthorn/domain/message.ts';
import { createFairQueue, type FairQueue } from '@posthorn/platform/async/fair-queue.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createShares } from '@posthorn/platform/memory/memory-budgets.ts';
import {
  bytesOfRecord,
  createdSource,
  type CreatedSource,
  recordsBetween,
} from '@posthorn/platform/records/created-records.ts';
import type { OpenSpan, Spans } from '@posthorn/platform/service/spans.ts';
import { createThrottledQueue } from '../limits/throttle.ts';
import { NO_PACE, type PublishBudget, type PublishPace, SLICE_RECORDS } from './publish-budget.ts';
import type { TrackedMessage } from './watermark-tracker.ts';

/** The records of one produce request to Kafka, and the messages that it completes. */
interface PublishBatch {
  records: OutgoingRecord[];
  bytes: number;
  completed: Pending[];
  /** Messages that are throttled. */
  throttled: Pending[];
}

interface Pending {
  source: CreatedSource;
  tracked: TrackedMessage;
  /** Index of the first target without a record. */
  next: number;
  /** Records since it was throttled last. */
  sinceWait: number;
}

interface PublishQueueDeps {
  topic: string;
  /** Memory for waiting messages, in bytes. */
  budgetBytes: number;
  /** Absent: no message is throttled. */
  pace?: PublishPace | undefined;
  /** Absent: no company waits for what it has published to be read. */
  budget?: QueueBudget | undefined;
  /** Is called when a throttled message may go on. */
  onReady?: () => void;
}

type QueueBudget = Pick<PublishBudget, 'roomOf' | 'noteWritten'>;

const NO_BUDGET: QueueBudget = { roomOf: () => Infinity, noteWritten: () => undefined };

export interface PublishQueue {
  /** Whether the message fits into its company's share. */
  hasRoom: (message: Message) => boolean;
  /** Adds it, whether it fits or not. Sets `tracked.isPublished` when all of it is acknowledged. */
  add: (message: Message, tracked: TrackedMessage) => void;
  takeBatch: () => PublishBatch;
  acknowledge: (batch: PublishBatch) => void;
  /** The bytes that a company holds. */
  bytesOf: (companyId: string) => number;
  /** True when no record may be published; the last batch may be under way, messages may be throttled, and companies wait. */
  isEmpty: () => boolean;
  /** Queues the companies again that have room in their budget. */
  releaseWaiting: () => void;
  /** How many companies wait because too many of their records are unread. */
  waitingCompanies: () => number;
  /** Ends throttling: the remaining messages are published without a wait. */
  endThrottle: () => void;
  usedBytes: () => number;
}

/** Records of one batch. A message that comes meanwhile waits for no more than these. */
export const MAX_RECORDS = 500;
/** Bytes of one batch, by estimate: four requests to a broker. */
const MAX_BYTES = 2_097_152;
/** Records of one company in one turn. */
const TURN_RECORDS = 20;

/**
 * Messages that wait for Kafka. Companies take turns of 20 records, so that a message to 10,000
 * webhooks is published in parts, between the messages of other companies. A company that waits alone
 * fills every batch. Where others use the gateway, a message is throttled after each part; later messages of its
 * company do not wait for it. One that is in order is not throttled, so that none of them overtakes it. A company whose budget is used up waits with all of its messages.
 */
export function createPublishQueue({
  topic,
  budgetBytes,
  pace = NO_PACE,
  budget = NO_BUDGET,
  onReady = () => undefined,
}: PublishQueueDeps): PublishQueue {
  const turns = createFairQueue<Pending>(TURN_RECORDS);
  const shares = createShares(budgetBytes);
  const throttled = createThrottled(pace, (pending) => {
    turns.push(pending.source.message.companyId, pending);
    onReady();
  });
  let publishingBytes = 0;

  return {
    hasRoom: (message) => shares.hasRoom(message.companyId, estimatedBytesOf(message)),
    add(message, tracked) {
      const source = createdSource(message);
      shares.add(message.companyId, bytesOfSource(source));
      turns.push(message.companyId, { source, tracked, next: 0, sinceWait: 0 });
    },
    takeBatch() {
      const batch = fillBatch({ topic, turns, budget, mustWait: throttled.mustWait });
      publishingBytes = batch.bytes;
      return batch;
    },
    acknowledge({ completed, throttled: waiting }) {
      publishingBytes = 0;
      waiting.forEach(throttled.add);
      for (const { tracked, source } of completed) {
        tracked.isPublished = true;
        shares.remove(source.message.companyId, bytesOfSource(source));
      }
    },
    bytesOf: shares.heldBy,
    isEmpty: () => turns.size() === 0,
    releaseWaiting() {
      const ready = [...turns.parked()].filter((companyId) => budget.roomOf(companyId) > 0);
      for (const companyId of ready) turns.unpark(companyId);
      if (ready.length > 0) onReady();
    },
    waitingCompanies: () => [...turns.parked()].length,
    endThrottle: throttled.end,
    usedBytes: () => shares.used() + publishingBytes,
  };
}

interface ThrottledMessages {
  mustWait: (pending: Pending) => boolean;
  /** The message goes on before those of its company that are throttled too. */
  add: (pending: Pending) => void;
  end: () => void;
}

function createThrottled(
  { waitMs, after }: PublishPace,
  release: (pending: Pending) => void,
): ThrottledMessages {
  const queue = createThrottledQueue<Pending>({
    waitMs: (companyId) => waitMs(companyId, SLICE_RECORDS),
    after,
    release(pending) {
      pending.sinceWait = 0;
      release(pending);
    },
  });
  let isEnded = false;
  return {
    mustWait: ({ source: { message }, sinceWait }) =>
      !isEnded &&
      !message.isOrdered &&
      sinceWait >= SLICE_RECORDS &&
      waitMs(message.companyId, sinceWait) > 0,
    add(pending) {
      queue.add(pending.source.message.companyId, pending, 'first');
    },
    end() {
      isEnded = true;
      queue.end();
    },
  };
}

interface FillDeps {
  topic: string;
  turns: FairQueue<Pending>;
  budget: QueueBudget;
  mustWait: (pending: Pending) => boolean;
}

function fillBatch({ topic, turns, budget, mustWait }: FillDeps): PublishBatch {
  const batch: PublishBatch = { records: [], bytes: 0, completed: [], throttled: [] };
  for (let pending = turns.next(); pending; pending = turns.next()) {
    const { source, next } = pending;
    const { companyId, targets } = source.message;
    const left = targets.length - next;
    const room = budget.roomOf(companyId);
    if (left > 0 && room <= 0) {
      turns.park(companyId);
      continue;
    }
    const count = Math.min(left, TURN_RECORDS, recordsThatFit(batch, bytesOfRecord(source)), room);
    if (count === 0 && left > 0) break;
    batch.records.push(...recordsBetween(topic, source, next, next + count));
    budget.noteWritten(companyId, targets.slice(next, next + count));
    batch.bytes += count * bytesOfRecord(source);
    pending.next += count;
    pending.sinceWait += count;
    const isComplete = count === left;
    const isThrottled = !isComplete && mustWait(pending);
    if (isComplete) batch.completed.push(pending);
    if (isThrottled) batch.throttled.push(pending);
    // A message without targets publishes nothing, but must use up a turn at some time.
    turns.charge(Math.max(1, count), isComplete || isThrottled);
  }
  return batch;
}

/** Returns how many records of this size fit into the rest of the batch; at least one when it is empty. */
function recordsThatFit({ records, bytes }: PublishBatch, recordBytes: number): number {
  if (records.length === 0) return Math.max(1, Math.floor(MAX_BYTES / recordBytes));
  const byBytes = Math.floor((MAX_BYTES - bytes) / recordBytes);
  return Math.max(0, Math.min(MAX_RECORDS - records.length, byBytes));
}

/** The message, its ids and its places in these queues. */
const MESSAGE_BYTES = 1_024;
/** The id of a webhook. */
const TARGET_BYTES = 60;

function bytesOfSource({ message, payload }: CreatedSource): number {
  const bytes = MESSAGE_BYTES + (payload?.length ?? 0) + charsOfMessage(message);
  return bytes + message.targets.length * TARGET_BYTES;
}

/** Estimates the same before the records are made: characters as bytes, and always with the payload. */
export function estimatedBytesOf(message: Message): number {
  return MESSAGE_BYTES + charsOfMessage(message) + message.targets.length * TARGET_BYTES;
}

/** While Kafka is away the queue may hold tens of thousands of messages, and a span takes about 2 kB. */
const MAX_OPEN = 5_000;

/**
 * Makes a span of each message, from its place in the queue until Kafka has acknowledged all of its records. The records
 * carry the `traceparent` of the span, so that attempts are below it.
 */
export function tracePublish(queue: PublishQueue, spans: Spans, nowMs: () => number): PublishQueue {
  const open = new Map<TrackedMessage, OpenSpan>();
  return {
    ...queue,
    add(message, tracked) {
      const { traceparent, id, companyId, appId, targets } = message;
      const span = traceparent === undefined ? null : beginOrDrop();
      if (!span) {
        queue.add(message, tracked);
        return;
      }
      open.set(tracked, span);
      queue.add({ ...message, traceparent: span.traceparent }, tracked);

      function beginOrDrop(): OpenSpan | null {
        if (open.size >= MAX_OPEN) {
          spans.countDropped();
          return null;
        }
        return spans.begin({
          step: 'publish',
          parent: traceparent,
          startMs: nowMs(),
          attributes: {
            'posthorn.message.id': id,
            'posthorn.company.id': companyId,
            'posthorn.app.id': appId,
            'posthorn.targets': targets.length,
          },
        });
      }
    },
    acknowledge(batch) {
      queue.acknowledge(batch);
      const endMs = nowMs();
      for (const { tracked } of batch.completed) {
        open.get(tracked)?.end({ endMs });
        open.delete(tracked);
      }
    },
  };
}
