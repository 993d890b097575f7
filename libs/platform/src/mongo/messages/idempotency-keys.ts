import { DAY_MS, dayNumberOf, firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import mongoose, { type mongo } from 'mongoose';
import { documentsIn } from '../company-documents.ts';
import { asStoreError, DUPLICATE_KEY } from '../connect.ts';
import type { Database, Days } from '../days/days.ts';
import { readAll, readUpTo } from '../days/read-days.ts';
import { databaseClockMs } from '../days/watch-clock.ts';
import type { IdempotencyKeyDocument, MessageDocument } from '../documents.ts';

/** Which message has claimed an idempotency key, and how long ago. The message may not be stored. */
type KeyClaim = Pick<IdempotencyKeyDocument, 'messageId'> & { ageMs: number };

/** How long a key counts, from its claim for the message that has it (docs/contract.md, C8.1). */
export const KEPT_MS = DAY_MS;

/** The part of a day in which claims are made, by the database's clock. Times are in milliseconds since 1970. */
interface ClaimSpan {
  /** The number of the day. */
  day: number;
  fromMs: number;
  beforeMs: number;
  /** The other days in which another message may have the key. */
  others: readonly number[];
}

const HOUR_MS = 3_600_000;

/** In the last hour of a day the next one is searched too: the clocks of two MongoDB servers may differ. */
export function claimSpanAt(databaseMs: number): ClaimSpan {
  const day = dayNumberOf(databaseMs);
  const [fromMs, endMs] = [day * DAY_MS, (day + 1) * DAY_MS];
  const isLast = databaseMs >= endMs - HOUR_MS;
  const beforeMs = isLast ? endMs : endMs - HOUR_MS;
  return { day, fromMs, beforeMs, others: isLast ? [day - 1, day + 1] : [day - 1] };
}

/** The claims of idempotency keys in their days. */
export interface KeyClaims {
  /**
   * Claims the keys of these messages in one majority write when the database's clock is within the span. Returns those
   * whose key another message has; null when the clock is not.
   */
  write: (span: ClaimSpan, keyed: readonly Message[]) => Promise<Set<Message> | null>;
  /** Returns the messages whose key has a valid claim of another message in this day, as a majority has stored it. */
  takenIn: (day: number, keyed: readonly Message[]) => Promise<Message[]>;
  /** Ends the claims of these messages in this day. */
  remove: (day: number, keyed: readonly Message[]) => Promise<void>;
  /** True when both days have one collection. */
  isOnePlace: (day: number, other: number) => boolean;
}

interface ClaimDeps {
  claims: KeyClaims;
  /** Reads the database's clock, in milliseconds since 1970. */
  databaseMs: () => Promise<number>;
  monotonicMs: () => number;
}

/**
 * Claims the keys of these messages. Returns those whose key another message has; null when the database's clock changed
 * so fast that none is claimed.
 */
type Claim = (keyed: readonly Message[]) => Promise<Set<Message> | null>;

/**
 * A claim is written into its day, then the day before is searched for the key. Two messages never get one key, however
 * the clocks of gateways differ:
 *
 * - The server writes a claim only while its own clock is in the day (`ClaimSpan`), so that all gateways use one
 *   collection; its `_id` decides there.
 * - Around midnight two servers may disagree about the day. Both messages have then written their claims before they
 *   search the day of the other: until an hour before midnight the earlier day needs no search, because nothing is
 *   written into the next one yet. Whichever claim a majority has stored last, its message finds the other one. A
 *   message that finds another gives up its own claim; when both find each other, both are repeated by their clients.
 */
export function createClaim({ claims, databaseMs, monotonicMs }: ClaimDeps): Claim {
  /**
   * The database's clock minus the monotonic clock. It is wrong after the process was suspended or the database's clock
   * was set; then MongoDB refuses the claim, and it is read again.
   */
  let offsetMs: number | null = null;
  const readSpan = async (): Promise<ClaimSpan> => {
    offsetMs = (await databaseMs()) - monotonicMs();
    return claimSpanAt(offsetMs + monotonicMs());
  };

  return async (keyed) => {
    let span = offsetMs === null ? await readSpan() : claimSpanAt(offsetMs + monotonicMs());
    let taken = await claims.write(span, keyed);
    if (!taken) {
      span = await readSpan();
      taken = await claims.write(span, keyed);
    }
    if (!taken) return null;
    const { day, others } = span;
    const claimed = keyed.filter((message) => !taken.has(message));
    const searched = others.filter((other) => !claims.isOnePlace(day, other));
    const found = await Promise.all(searched.map((other) => claims.takenIn(other, claimed)));
    const lost = [...new Set(found.flat())];
    if (lost.length > 0) await claims.remove(day, lost);
    return new Set([...taken, ...lost]);
  };
}

/** The id of no company has a slash in it. */
const keyIdOf = (companyId: string, key: string): string => `${companyId}/${key}`;

/** All keys of a company, as a range of ids that needs no index of its own: `0` follows `/`. */
export const keysOf = (companyId: string) => ({ $gt: `${companyId}/`, $lt: `${companyId}0` });

const CLAIM = { messageId: 1, ageMs: { $subtract: ['$$NOW', '$createdAt'] } } as const;
/** A rollback must not take back what is decided by these reads. */
const DECIDED = { readConcern: { level: 'majority' } } as const;
/** MongoDB refuses a claim out of its span with it: no id of a message is a date. */
const CONVERSION_FAILURE = 241;

export function createKeyClaims({
  days: { idempotencyKeys: keys },
}: Pick<Database, 'days'>): KeyClaims {
  return {
    async write(span, keyed) {
      const writes = keyed.map((message) => claimOf(message, span));
      if (writes.length === 0) return new Set();
      try {
        await keys.of(span.day).bulkWrite(writes, { ordered: false });
        return new Set();
      } catch (error) {
        return takenAmong(error, keyed);
      }
    },
    async takenIn(day, keyed) {
      if (keyed.length === 0) return [];
      const ids = keyed.map(idOfKey);
      const found = await keys
        .of(day)
        .find({ _id: { $in: ids } }, DECIDED)
        .project<KeyClaim & { _id: string }>(CLAIM)
        .toArray();
      const counting = found.filter(({ ageMs }) => ageMs < KEPT_MS);
      const holders = new Map(counting.map(({ _id, messageId }) => [_id, messageId]));
      return keyed.filter((message) => {
        const holder = holders.get(idOfKey(message));
        return holder !== undefined && holder !== message.id;
      });
    },
    async remove(day, keyed) {
      const claims = keyed.map((message) => ({ _id: idOfKey(message), messageId: message.id }));
      const removals = claims.map((filter) => ({ deleteOne: { filter } }));
      await keys.of(day).bulkWrite(removals, { ordered: false });
    },
    isOnePlace: (day, other) => keys.of(day).namespace === keys.of(other).namespace,
  };
}

const idOfKey = ({ companyId, idempotency }: Message): string =>
  keyIdOf(companyId, idempotency?.key ?? '');

/** MongoDB refuses it as a second document of the same key when another message has claimed that. */
function claimOf(
  message: Message,
  { fromMs, beforeMs }: ClaimSpan,
): mongo.AnyBulkWriteOperation<IdempotencyKeyDocument> {
  const { id: messageId, companyId } = message;
  const isWithin = {
    $and: [{ $gte: ['$$NOW', new Date(fromMs)] }, { $lt: ['$$NOW', new Date(beforeMs)] }],
  };
  // An upsert cannot filter by the database's clock.
  const createdAt = { $cond: [isWithin, '$$NOW', { $toDate: '$messageId' }] };
  const filter = { _id: idOfKey(message), messageId };
  return { updateOne: { filter, update: [{ $set: { companyId, createdAt } }], upsert: true } };
}

/** Null when a claim was out of its span. Rethrows the error unless the server has answered for every key. */
function takenAmong(error: unknown, keyed: readonly Message[]): Set<Message> | null {
  if (!(error instanceof mongoose.mongo.MongoBulkWriteError)) throw error;
  const { writeErrors, result } = error;
  const list = [writeErrors].flat();
  // The driver throws the same error with an empty list when the server did not respond.
  const isAnswered = list.length > 0 && !result.getWriteConcernError();
  const isKnown = ({ code }: mongo.WriteError): boolean =>
    code === DUPLICATE_KEY || code === CONVERSION_FAILURE;
  if (!isAnswered || !list.every(isKnown)) throw error;
  if (list.some(({ code }) => code === CONVERSION_FAILURE)) return null;
  const taken = new Set(list.map(({ index }) => index));
  return new Set(keyed.filter((_, index) => taken.has(index)));
}

/**
 * Claims the keys of the messages of a batch that have one. Returns those that must not be stored. `repeated`: another
 * message has the key. `refused`: it is not certain whether this one has it.
 */
type ClaimKeys = (
  batch: readonly Message[],
) => Promise<ReadonlyMap<Message, 'repeated' | 'refused'>>;

interface ClaimKeysDeps {
  claim: Claim;
  monotonicMs: () => number;
}

const NONE: Awaited<ReturnType<ClaimKeys>> = new Map();

/**
 * A claim whose message is not stored counts for two minutes. A claim takes 30 s at most, and the write of the message
 * 25 s; the rest is for a new primary whose clock differs.
 */
export const CLAIM_LASTS_MS = 120_000;
/** Later than that, this process was suspended meanwhile, and the claim may be over. */
const CLAIM_WITHIN_MS = 30_000;

export function createClaimKeys({ claim, monotonicMs }: ClaimKeysDeps): ClaimKeys {
  return async (batch) => {
    const keyed = batch.filter(({ idempotency }) => idempotency !== null);
    if (keyed.length === 0) return NONE;
    const refused = new Map(keyed.map((message) => [message, 'refused' as const]));
    const beganMs = monotonicMs();
    try {
      const taken = await claim(keyed);
      if (!taken || monotonicMs() - beganMs > CLAIM_WITHIN_MS) return refused;
      return new Map([...taken].map((message) => [message, 'repeated']));
    } catch (error) {
      const isUnanswered =
        error instanceof mongoose.mongo.MongoBulkWriteError || asStoreError(error) !== error;
      if (!isUnanswered) throw error;
      return refused;
    }
  };
}

/** The message that has an idempotency key, without its payload and first response: both may be large. */
export interface KeyHolder {
  kind: 'holder';
  id: string;
  /** How long ago the key was claimed for it or, when it was claimed for another message, how long ago it was made. */
  ageMs: number;
  /** SHA-256 of the body of its request, hex. */
  bodyHash: string;
  /** The size of its document. */
  storedBytes: number;
  /** The message that the key was claimed for. */
  claimedFor: string;
}

/** A key that was claimed for a message which is not stored, or not by a majority yet. */
export interface ClaimedKey {
  kind: 'claimed';
  claimedFor: string;
  /** How long ago that was. */
  ageMs: number;
}

/** Which messages have the idempotency keys of a company. Ages are by the database's clock. */
export interface KeyHolders {
  /** Finds which majority-committed message has this idempotency key, without reading the message. */
  findKeyHolder: (
    companyId: string,
    idempotencyKey: string,
  ) => Promise<KeyHolder | ClaimedKey | null>;
  /** Makes the key free for another message, unless that has been done since it was found. */
  releaseKey: (
    companyId: string,
    idempotencyKey: string,
    found: KeyHolder | ClaimedKey,
  ) => Promise<void>;
}

/**
 * A key is claimed in its day, and the message that it was claimed for has it too. Of two messages with one
 * key in one collection, the unique index refuses the second. So the first one may have a key that was claimed for the
 * second, when its own claim had ended before it was stored.
 */
export function createKeyHolders(db: Database): KeyHolders {
  const { messages, idempotencyKeys } = db.days;
  /** The collections that may have a claim that counts, the newest first. */
  const places = async (): Promise<mongo.Collection<IdempotencyKeyDocument>[]> => {
    const today = dayNumberOf(await databaseClockMs(db));
    const all = [today + 1, today, today - 1].map((day) => idempotencyKeys.of(day));
    return [...new Map(all.map((each) => [each.namespace, each])).values()];
  };

  return {
    async findKeyHolder(companyId, key) {
      const byId = { _id: keyIdOf(companyId, key) };
      const options = { ...DECIDED, projection: CLAIM };
      const claims = await readAll(await places(), (documents) =>
        documents.findOne<KeyClaim>(byId, options),
      );
      let newest: KeyHolder | ClaimedKey | null = null;
      for (const claim of claims) {
        if (!claim) continue;
        const found = await readHolder(messages, { companyId, key }, claim);
        if (found.kind === 'holder' && found.ageMs < KEPT_MS) return found;
        newest ??= found;
      }
      return newest;
    },
    async releaseKey(companyId, key, found) {
      if (found.kind === 'holder') {
        const { id: _id } = found;
        const own = documentsIn<'messages'>(messages.of(_id), companyId);
        await own.updateMany({ _id }, { $unset: { idempotency: '' } });
      }
      const claim = { _id: keyIdOf(companyId, key), messageId: found.claimedFor };
      await readAll(await places(), (documents) => documents.deleteOne(claim));
    },
  };
}

async function readHolder(
  messages: Days['messages'],
  { companyId, key }: { companyId: string; key: string },
  { messageId: claimedFor, ageMs }: KeyClaim,
): Promise<KeyHolder | ClaimedKey> {
  const byKey = { 'idempotency.key': key };
  const findIn = (
    collections: readonly mongo.Collection<MessageDocument>[],
    filter: object,
  ): Promise<KeyHolderDocument[]> =>
    readUpTo(collections, 1, (documents) =>
      documentsIn<'messages'>(documents, companyId)
        .find(filter, DECIDED)
        .project<KeyHolderDocument>(KEY_HOLDER)
        .toArray(),
    );
  const [holder] = await findIn([messages.of(claimedFor)], { _id: claimedFor, ...byKey });
  if (holder) return { ...toKeyHolder(holder, claimedFor), ageMs };
  const sinceMs = timeMsOf(claimedFor) - HOUR_MS;
  const around = messages.within({ fromId: firstIdAt('msg', sinceMs) });
  const [other] = await findIn(around, byKey);
  return other ? toKeyHolder(other, claimedFor) : { kind: 'claimed', claimedFor, ageMs };
}

interface KeyHolderDocument extends Pick<MessageDocument, '_id'> {
  ageMs: number;
  idempotency: { bodyHash: string };
  storedBytes: number;
}

const KEY_HOLDER = {
  ageMs: { $subtract: ['$$NOW', '$createdAt'] },
  'idempotency.bodyHash': 1,
  storedBytes: { $bsonSize: '$$ROOT' },
} as const;

function toKeyHolder(
  { _id: id, ageMs, idempotency: { bodyHash }, storedBytes }: KeyHolderDocument,
  claimedFor: string,
): KeyHolder {
  return { kind: 'holder', id, ageMs, bodyHash, storedBytes, claimedFor };
}
