import type { Message } from '@posthorn/domain/message.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { keepTrying } from '@posthorn/platform/keep-trying.ts';
import type { Logger } from '@posthorn/platform/logger.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages.ts';
import {
  createdRecords,
  ONE_SEND,
  takeForOneSend,
} from '@posthorn/platform/outbox/created-records.ts';

export interface PublicationDeps {
  topic: string;
  publisherId: string;
  log: RecordLog;
  messages: Pick<MessageStore, 'pageOf'>;
  logger: Logger;
  nowMs: () => number;
}

export interface PublicationState {
  /** Every message of this publisher up to this id was acknowledged by Kafka. */
  watermark: string;
  /** Messages in memory that wait for it; while reading back from the store, at least this many. */
  unpublished: number;
  /** How long the oldest of them has waited, in milliseconds; null when there is none. */
  behindMs: number | null;
}

export interface Publication {
  /** Takes over stored messages, in the order of their ids. */
  add: (stored: readonly Message[]) => void;
  state: () => PublicationState;
  /** Publishes what is left for up to `drainMs`; what remains is the sweeper's. */
  close: (drainMs: number) => Promise<void>;
}

/** Above either bound the messages are left to the store and read back later (about 64 MiB at most). */
const MAX_QUEUED = 20_000;
const MAX_QUEUED_CHARS = 33_554_432;
const PAGE = 200;

interface Work extends PublicationDeps {
  queue: Message[];
  queuedChars: number;
  watermark: string;
  /** Since when, by our clock, something waits. */
  oldestAtMs: number | null;
  isRereading: boolean;
  /** Counts calls of `add`, so that a page knows whether it saw everything. */
  additions: number;
  running: Promise<void> | null;
  closing: AbortController;
}

/**
 * Publishes behind the answer, one produce at a time and in id order, so that a single id, the
 * watermark, says what Kafka has. While Kafka is away messages wait here up to a bound; beyond it
 * only the watermark is kept, and what follows it is read back from the store.
 */
export function createPublication(deps: PublicationDeps): Publication {
  const work: Work = {
    ...deps,
    queue: [],
    queuedChars: 0,
    watermark: '',
    oldestAtMs: null,
    isRereading: false,
    additions: 0,
    running: null,
    closing: new AbortController(),
  };
  return {
    add: (stored) => {
      addTo(work, stored);
    },
    state: () => stateOf(work),
    close: (drainMs) => close(work, drainMs),
  };
}

function addTo(work: Work, stored: readonly Message[]): void {
  if (stored.length === 0) return;
  work.additions += 1;
  work.oldestAtMs ??= stored[0]?.createdAtMs ?? null;
  if (!work.isRereading) {
    work.queue.push(...stored);
    work.queuedChars += charsOf(stored);
    if (work.queue.length > MAX_QUEUED || work.queuedChars > MAX_QUEUED_CHARS) leaveToStore(work);
  }
  work.running ??= run(work);
}

function leaveToStore(work: Work): void {
  work.queue = [];
  work.queuedChars = 0;
  work.isRereading = true;
}

async function run(work: Work): Promise<void> {
  try {
    while (work.isRereading || work.queue.length > 0) {
      if (work.isRereading) await rereadPage(work);
      else await publish(work, takeForOneSend(work.queue, ONE_SEND));
    }
    work.oldestAtMs = null;
  } catch (error) {
    // Only a close ends the tries; the sweeper takes over from the watermark.
    work.logger.warn({ err: error, watermark: work.watermark }, 'publication left to the sweeper');
  } finally {
    work.running = null;
  }
}

async function publish(work: Work, batch: readonly Message[]): Promise<void> {
  const records = batch.flatMap((message) => createdRecords(work.topic, message));
  await untilDone(work, () => work.log.publish(records));
  work.watermark = batch.at(-1)?.id ?? work.watermark;
  if (work.isRereading) return;
  work.queue = work.queue.slice(batch.length);
  work.queuedChars -= charsOf(batch);
  work.oldestAtMs = work.queue[0]?.createdAtMs ?? null;
}

async function rereadPage(work: Work): Promise<void> {
  const seen = work.additions;
  const { publisherId, watermark } = work;
  let rest = await untilDone(work, () =>
    work.messages.pageOf({ publisherId, afterId: watermark, limit: PAGE }),
  );
  const isLast = rest.length < PAGE;
  while (rest.length > 0) {
    const batch = takeForOneSend(rest, ONE_SEND);
    await publish(work, batch);
    rest = rest.slice(batch.length);
  }
  if (isLast && seen === work.additions) work.isRereading = false;
}

function untilDone<T>(work: Work, step: () => Promise<T>): Promise<T> {
  return keepTrying(step, {
    signal: work.closing.signal,
    onFailure: (error, tryNumber) => {
      if (tryNumber > 1) return;
      work.logger.warn({ err: error, watermark: work.watermark }, 'publication waits');
    },
  });
}

function stateOf({ watermark, queue, isRereading, oldestAtMs, nowMs }: Work): PublicationState {
  return {
    watermark,
    unpublished: isRereading ? Math.max(1, queue.length) : queue.length,
    behindMs: oldestAtMs === null ? null : Math.max(0, nowMs() - oldestAtMs),
  };
}

async function close(work: Work, drainMs: number): Promise<void> {
  const timer = setTimeout(() => {
    work.closing.abort();
  }, drainMs);
  await work.running;
  clearTimeout(timer);
}

function charsOf(messages: readonly Message[]): number {
  return messages.reduce((sum, { payload }) => sum + payload.length, 0);
}
