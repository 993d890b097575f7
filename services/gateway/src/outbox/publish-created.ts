import type { Message } from '@posthorn/domain/message.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { keepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createLeftToStore, type LeftToStore } from './left-to-store.ts';
import { createPublishLedger, type LedgerLine, type PublishLedger } from './publish-ledger.ts';
import { bytesOfWaiting, createPublishQueue, type PublishQueue } from './publish-queue.ts';

export interface PublicationDeps {
  topic: string;
  publisherId: string;
  log: Pick<RecordLog, 'publish'>;
  messages: Pick<MessageStore, 'pageOf'>;
  /** What messages that wait for Kafka may hold in memory, in bytes. */
  publishQueueBytes: number;
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
  /** What waits in memory, by estimate. */
  usedBytes: () => number;
  /** Publishes what is left for up to `drainMs`; what remains is the sweeper's. */
  close: (drainMs: number) => Promise<void>;
}

interface Work extends PublicationDeps {
  queue: PublishQueue;
  left: LeftToStore;
  ledger: PublishLedger;
  /** The id that was handed over last. */
  lastId: string;
  running: Promise<void> | null;
  closing: AbortController;
}

/** The part of the queue that is read back at once, and below which the next page is read. */
const PAGE_PART = 1 / 8;

/**
 * Publishes behind the answer, one produce at a time. Companies take turns in each, and a message to
 * many webhooks goes in pieces, so messages are finished out of order; the watermark is the id up to
 * which Kafka has everything. A company that waits with more than its share of the memory is left to
 * the store and read back from there, while the others go on.
 */
export function createPublication(deps: PublicationDeps): Publication {
  const work: Work = {
    ...deps,
    queue: createPublishQueue(deps.topic, deps.publishQueueBytes),
    left: createLeftToStore(bytesOfWaiting),
    ledger: createPublishLedger(),
    lastId: '',
    running: null,
    closing: new AbortController(),
  };
  return {
    add: (stored) => {
      addTo(work, stored);
    },
    state: () => stateOf(work),
    usedBytes: () => work.queue.usedBytes() + work.ledger.usedBytes(),
    close: (drainMs) => close(work, drainMs),
  };
}

function addTo(work: Work, stored: readonly Message[]): void {
  if (stored.length === 0) return;
  const { queue, left } = work;
  for (const message of stored) {
    if (left.has(message.companyId) || !queue.hasRoom(message)) left.leave(message, work.lastId);
    else enqueue(work, 'direct', message);
    work.lastId = message.id;
  }
  work.running ??= run(work);
}

function enqueue({ queue, ledger }: Work, line: LedgerLine, message: Message): void {
  queue.add(message, ledger.add(line, message.id, message.createdAtMs));
}

async function run(work: Work): Promise<void> {
  const { queue, left, logger } = work;
  try {
    while (!queue.isEmpty() || left.readTo() !== null) {
      if (isPageWanted(work)) await readPage(work);
      else await publishNext(work);
    }
  } catch (error) {
    // Only a close ends the tries; the sweeper takes over from the watermark.
    logger.warn(
      { err: error, watermark: work.ledger.watermark() },
      'publication left to the sweeper',
    );
  } finally {
    work.running = null;
  }
}

async function publishNext(work: Work): Promise<void> {
  const { queue, ledger, left, log } = work;
  const send = queue.takeSend();
  await untilDone(work, () => log.publish(send.records));
  queue.acknowledge(send);
  ledger.raise(left.readTo());
}

/** When what is in memory of the companies that are left to the store runs low. */
function isPageWanted({ queue, left, publishQueueBytes }: Work): boolean {
  if (left.readTo() === null) return false;
  let held = 0;
  for (const companyId of left.companies()) held += queue.heldBy(companyId);
  return held <= publishQueueBytes * PAGE_PART;
}

/**
 * What is found beyond the id that was handed over before the question is passed over: its insert
 * may have been under way, and an earlier message of the same batch may be missing.
 */
async function readPage(work: Work): Promise<void> {
  const { left, ledger, messages, publisherId, lastId } = work;
  const limit = left.pageLimit(work.publishQueueBytes * PAGE_PART);
  const [afterId, wantedId] = [left.readTo() ?? '', left.lastId()];
  const page = await untilDone(work, () => messages.pageOf({ publisherId, afterId, limit }));
  const known = page.filter(({ id }) => id <= lastId);
  for (const message of known) if (left.isLeft(message)) enqueue(work, 'readBack', message);
  const isEnd = page.length < limit || known.length < page.length;
  const last = known.at(-1);
  left.read(laterOf(last?.id ?? afterId, isEnd ? wantedId : ''), last?.createdAtMs);
  ledger.raise(left.readTo());
}

const laterOf = (one: string, other: string): string => (one > other ? one : other);

function untilDone<T>({ closing, logger, ledger }: Work, step: () => Promise<T>): Promise<T> {
  return keepTrying(step, {
    signal: closing.signal,
    onFailure: (error, tryNumber) => {
      if (tryNumber > 1) return;
      logger.warn({ err: error, watermark: ledger.watermark() }, 'publication waits');
    },
  });
}

function stateOf({ ledger, left, nowMs }: Work): PublicationState {
  const oldestMs = [ledger.oldestAtMs(), left.oldestAtMs()].filter((each) => each !== null);
  const unfinished = ledger.unfinished();
  return {
    watermark: ledger.watermark(),
    unpublished: left.readTo() === null ? unfinished : Math.max(1, unfinished),
    behindMs: oldestMs.length === 0 ? null : Math.max(0, nowMs() - Math.min(...oldestMs)),
  };
}

async function close(work: Work, drainMs: number): Promise<void> {
  const timer = setTimeout(() => {
    work.closing.abort();
  }, drainMs);
  await work.running;
  clearTimeout(timer);
}
