import { settleCancelled, type SettledDelivery } from '@posthorn/domain/delivery/settlement.ts';
import {
  cancelReasonAtAcceptance,
  PAYLOAD_ERASED,
} from '@posthorn/domain/delivery/when-cancelled.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { allTargetsOf, type Message } from '@posthorn/domain/message.ts';
import { slicesOf } from '../../async/fair-queue.ts';
import { createdSource } from '../../records/created-records.ts';
import { collection } from '../collections.ts';
import type { Database } from '../days/days.ts';
import { writeByDays } from '../days/read-days.ts';
import { databaseClockMs } from '../database-time.ts';
import { createDeliveryStore } from './deliveries.ts';
import { createMessageStore } from './messages.ts';

/**
 * Erases what a client wants erased (docs/contract.md C7.13, C12.9). The note of a message is written first. While it is
 * there, dispatchers send nothing of the message; and what its gateway has not finished, or an attempt that was under way
 * has stored since, the retry service erases two minutes later. Everything may be repeated.
 */
export interface RequestedErasures {
  /** Writes the note of a message, or writes it anew. */
  note: (messageId: string) => Promise<void>;
  /**
   * Erases the payload, cancels the pending deliveries, and erases the responses of all, those of replays too.
   * `betweenSlices` is called between two slices of the targets. Resolves with whether records in Kafka have the payload.
   */
  eraseMessage: (messageId: string, options: EraseOptions) => Promise<{ isInRecords: boolean }>;
  /** Erases the responses that the deliveries have now. */
  eraseResponses: (deliveryIds: readonly string[]) => Promise<void>;
  /** The noted messages, at most so many, the newest notes first. */
  listNoted: (limit: number) => Promise<string[]>;
  /** Whether the time of a noted message has come. */
  hasDue: (nowMs: number) => Promise<boolean>;
  /**
   * Erases the noted messages whose time has come once more, at most 20, and removes their notes. Resolves with their
   * number. To be called by one process at a time, which renews its lease in `betweenSlices`.
   */
  eraseDue: (betweenSlices?: () => Promise<void>) => Promise<number>;
}

interface EraseOptions {
  /** When the deliveries are cancelled, in milliseconds since 1970. */
  atMs: number;
  betweenSlices?: () => Promise<void>;
}

/**
 * A first attempt waits in a dispatcher for 30 s, its request takes 15 s, and as much again its access token; a payload is
 * cached for 60 s. A dispatcher learns of a note within two seconds.
 */
const ERASE_AGAIN_AFTER_MS = 120_000;
const DUE_AT_ONCE = 20;
/** To derive the ids of so many, and to encode their documents, takes 2 ms. */
const SLICE = 250;

export function createRequestedErasures(
  db: Database,
  againAfterMs: number = ERASE_AGAIN_AFTER_MS,
): RequestedErasures {
  const notes = collection(db, 'requestedErasures');
  const messages = createMessageStore(db);
  const deliveries = createDeliveryStore(db);

  const eraseMessage: RequestedErasures['eraseMessage'] = async (messageId, options) => {
    const [message] = await messages.findCommitted([messageId]);
    // It has expired, or was removed with its company.
    if (!message) return { isInRecords: false };
    const isInRecords = await erasePayload(db, message);
    // Read again, because a replay adds no target from now on: it leaves out messages whose payload is erased.
    const [erased = message] = await messages.findCommitted([messageId]);
    for (const [n, webhookIds] of slicesOf(allTargetsOf(erased), SLICE).entries()) {
      if (n > 0) await options.betweenSlices?.();
      const slice = webhookIds.map((webhookId) => unsent(message, webhookId, options.atMs));
      await endPending(deliveries, slice);
      await updateResponses(db, idsOf(slice), { omitsResponses: true });
    }
    return { isInRecords };
  };

  return {
    async note(_id) {
      // By the clock of the database, because another process compares it.
      const dueAt = { $add: ['$$NOW', againAfterMs] };
      await notes.updateOne({ _id }, [{ $set: { dueAt } }], { upsert: true });
    },
    eraseMessage,
    eraseResponses: (ids) => updateResponses(db, ids, {}),
    async listNoted(limit) {
      const found = await notes.find({}).sort({ dueAt: -1 }).limit(limit).toArray();
      return found.map(({ _id }) => _id);
    },
    hasDue: async (nowMs) => (await notes.findOne({ dueAt: { $lte: new Date(nowMs) } })) !== null,
    async eraseDue(betweenSlices) {
      const atMs = await databaseClockMs(db);
      const due = await notes
        .find({ dueAt: { $lte: new Date(atMs) } })
        .sort({ dueAt: 1 })
        .limit(DUE_AT_ONCE)
        .toArray();
      for (const { _id } of due) {
        await betweenSlices?.();
        await eraseMessage(_id, { atMs, ...(betweenSlices && { betweenSlices }) });
      }
      // A note that was written anew meanwhile stays.
      const removals = due.map(({ _id, dueAt }) => ({ deleteOne: { filter: { _id, dueAt } } }));
      if (removals.length > 0) await notes.bulkWrite(removals, { ordered: false });
      return due.length;
    },
  };
}

/**
 * Returns whether records in Kafka have the payload, which those of the first targets decide. That is stored too: an
 * erased payload does not show it.
 */
async function erasePayload(db: Database, message: Message): Promise<boolean> {
  if (message.isPayloadErased) return message.isPayloadInRecords === true;
  const isInRecords = createdSource(message).payload !== null;
  await db.days.messages.of(message.id).updateOne(
    { _id: message.id, isPayloadErased: { $ne: true } },
    {
      $set: {
        payload: '',
        isPayloadErased: true,
        ...(isInRecords && { isPayloadInRecords: true }),
      },
    },
  );
  return isInRecords;
}

/** The delivery of a target as it is recorded when it had no attempt before the payload was erased. */
function unsent(message: Message, webhookId: string, atMs: number): SettledDelivery {
  const { id: messageId } = message;
  const ref = { ...message, messageId, webhookId, deliveryId: deliveryIdOf(messageId, webhookId) };
  const reason = cancelReasonAtAcceptance(message, webhookId) ?? PAYLOAD_ERASED;
  return settleCancelled(ref, reason, atMs);
}

const idsOf = (slice: readonly SettledDelivery[]): string[] => slice.map(({ id }) => id);

/** Records the deliveries that are not recorded, as cancelled, and cancels those that are pending. */
async function endPending(
  deliveries: ReturnType<typeof createDeliveryStore>,
  slice: readonly SettledDelivery[],
): Promise<void> {
  const states = await deliveries.statesOf(idsOf(slice));
  // The message states the others (docs/contract.md C10.8).
  const missing = slice.filter(({ id, reason }) => !states.has(id) && reason === PAYLOAD_ERASED);
  // Their first attempt may be recorded since.
  const recorded = missing.length > 0 ? await deliveries.insertAll(missing) : new Set<string>();
  const pending = slice.filter(
    ({ id }) => recorded.has(id) || states.get(id)?.status === 'pending',
  );
  if (pending.length === 0) return;
  await deliveries.cancelPending(
    pending.map(({ id, updatedAtMs: atMs }) => ({ id, reason: PAYLOAD_ERASED, atMs })),
  );
}

/** Erases the responses of the recorded attempts; with `omitsResponses`, those of later ones are not shown either. */
async function updateResponses(
  db: Database,
  ids: readonly string[],
  fields: { omitsResponses?: true },
): Promise<void> {
  const erased = { 'attempts.$[].response': null, 'attempts.$[].responseHeaders': [] };
  await writeByDays(
    db.days.deliveries,
    ids,
    (id) => id,
    (documents, ofDay) =>
      documents.updateMany({ _id: { $in: [...ofDay] } }, { $set: { ...fields, ...erased } }),
  );
}
