import type { Message } from '@posthorn/domain/message.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import {
  bytesOfRecord,
  createdSource,
  recordsBetween,
  type CreatedSource,
} from '@posthorn/platform/outbox/created-records.ts';
import { createShares } from '@posthorn/platform/memory/shares.ts';
import { createTurns } from '@posthorn/platform/async/turns.ts';
import type { LedgerEntry } from './publish-ledger.ts';

/** What goes to Kafka in one produce, and the messages that it completes. */
export interface Send {
  records: OutgoingRecord[];
  bytes: number;
  completed: Pending[];
}

interface Pending {
  source: CreatedSource;
  entry: LedgerEntry;
  /** The first target without a record yet. */
  next: number;
}

export interface PublishQueue {
  /** Whether the message fits into its company's share. */
  hasRoom: (message: Message) => boolean;
  /** Takes it, whether it fits or not; `entry` is marked when all of it is acknowledged. */
  add: (message: Message, entry: LedgerEntry) => void;
  takeSend: () => Send;
  acknowledge: (send: Send) => void;
  /** Bytes of a company. */
  heldBy: (companyId: string) => number;
  /** True when no record waits; the last ones may be under way. */
  isEmpty: () => boolean;
  usedBytes: () => number;
}

/** At most so many records go at once, so that a message that comes meanwhile waits for no more. */
export const MAX_RECORDS = 500;
/** The bytes of those, by estimate: four requests to a broker. */
export const MAX_BYTES = 2_097_152;
/** Records of one company in one turn. */
export const TURN_RECORDS = 20;

/**
 * Messages that wait for Kafka. Companies take turns of 20 records, so that a message to 10,000
 * webhooks goes in pieces between the messages of the others; a company alone fills every send.
 */
export function createPublishQueue(topic: string, budgetBytes: number): PublishQueue {
  const turns = createTurns<Pending>(TURN_RECORDS);
  const shares = createShares(budgetBytes);
  let sending = 0;
  return {
    hasRoom: (message) => shares.hasRoom(message.companyId, bytesOfWaiting(message)),
    add(message, entry) {
      const source = createdSource(message);
      shares.add(message.companyId, bytesOfSource(source));
      turns.push(message.companyId, { source, entry, next: 0 });
    },
    takeSend() {
      const send = fillSend(topic, turns);
      sending = send.bytes;
      return send;
    },
    acknowledge({ completed }) {
      sending = 0;
      for (const { entry, source } of completed) {
        entry.isDone = true;
        shares.remove(source.message.companyId, bytesOfSource(source));
      }
    },
    heldBy: shares.heldBy,
    isEmpty: () => turns.size() === 0,
    usedBytes: () => shares.used() + sending,
  };
}

function fillSend(topic: string, turns: ReturnType<typeof createTurns<Pending>>): Send {
  const send: Send = { records: [], bytes: 0, completed: [] };
  for (let pending = turns.next(); pending; pending = turns.next()) {
    const { source, next } = pending;
    const left = source.message.targets.length - next;
    const count = Math.min(left, TURN_RECORDS, roomIn(send, bytesOfRecord(source)));
    if (count === 0 && left > 0) break;
    send.records.push(...recordsBetween(topic, source, next, next + count));
    send.bytes += count * bytesOfRecord(source);
    pending.next += count;
    if (count === left) send.completed.push(pending);
    // A message that no webhook gets costs nothing to send, and still uses up a turn at some time.
    turns.charge(Math.max(1, count), count === left);
  }
  return send;
}

/** Records of this size that still go into the send; at least one into an empty one. */
function roomIn({ records, bytes }: Send, recordBytes: number): number {
  if (records.length === 0) return Math.max(1, Math.floor(MAX_BYTES / recordBytes));
  const byBytes = Math.floor((MAX_BYTES - bytes) / recordBytes);
  return Math.max(0, Math.min(MAX_RECORDS - records.length, byBytes));
}

/** The message, its ids and its places here. */
const MESSAGE_BYTES = 1_024;
/** The id of a webhook. */
const TARGET_BYTES = 60;

function bytesOfSource({ message, payload }: CreatedSource): number {
  return MESSAGE_BYTES + (payload?.length ?? 0) + message.targets.length * TARGET_BYTES;
}

/** The same before it is taken: characters for bytes, and the payload whether it is carried or not. */
export function bytesOfWaiting({ payload, targets }: Message): number {
  return MESSAGE_BYTES + payload.length + targets.length * TARGET_BYTES;
}
