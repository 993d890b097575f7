import { DAY_MS, dayNumberOf, firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { required } from '@posthorn/domain/required.ts';
import mongoose, { type mongo } from 'mongoose';
import { documentsIn } from '../company-documents.ts';
import { asStoreError, DUPLICATE_KEY } from '../connect.ts';
import type { Database, Days } from '../days/days.ts';
import { readAll, readByIds, writeByDays } from '../days/read-days.ts';
import { databaseClockMs } from '../database-time.ts';
import type { IdempotencyKeyDocument, MessageDocument } from '../documents.ts';

/** The message that has claimed an idempotency key, and how long ago. The message may not be stored. */
type KeyClaim = Pick<IdempotencyKeyDocument, 'messageId' | 'ingestedFrom'> & { ageMs: number };

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
    const found = await Promise.all(others.map((other) => claims.takenIn(other, claimed)));
    const lost = [...new Set(found.flat())];
    if (lost.length > 0) await claims.remove(day, lost);
    return new Set([...taken, ...lost]);
  };
}

/** The id of no company has a slash in it. */
const keyIdOf = (companyId: string, key: string): string => `${companyId}/${key}`;

/** All keys of a company, as a range of ids that needs no index of its own: `0` follows `/`. */
export const keysOf = (companyId: string) => ({ $gt: `${companyId}/`, $lt: `${companyId}0` });

const CLAIM = {
  messageId: 1,
  ingestedFrom: 1,
  ageMs: { $subtract: ['$$NOW', '$createdAt'] },
} as const;
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
  };
}

const idOfKey = ({ companyId, idempotency }: Message): string =>
  keyIdOf(companyId, idempotency?.key ?? '');

/** MongoDB refuses it as a second document of the same key when another message has claimed that. */
function claimOf(
  message: Message,
  { fromMs, beforeMs }: ClaimSpan,
): mongo.AnyBulkWriteOperation<IdempotencyKeyDocument> {
  const { id: messageId, companyId, idempotency } = message;
  const place = idempotency?.ingestedFrom;
  const isWithin = {
    $and: [{ $gte: ['$$NOW', new Date(fromMs)] }, { $lt: ['$$NOW', new Date(beforeMs)] }],
  };
  // An upsert cannot filter by the database's clock.
  const createdAt = { $cond: [isWithin, '$$NOW', { $toDate: '$messageId' }] };
  const filter = { _id: idOfKey(message), messageId };
  const ingested = place !== undefined && { ingestedFrom: { $literal: place } };
  const fields = { companyId, createdAt, ...ingested };
  return { updateOne: { filter, update: [{ $set: fields }], upsert: true } };
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
/** A message that is made now is stored within this time, but while MongoDB does not answer. */
const STORED_WITHIN_MS = 60_000;

/**
 * Returns true when the key of a record may be released from a claim whose message is not stored, for a new message of
 * the same record. The former message may still be stored: in a collection of one day the unique index refuses the
 * second of the two. Across midnight, and where the collection is spread over shards, nothing does, so the claim has to
 * be over there.
 */
export function mayTakeOver(
  { claimedFor, ageMs }: Pick<ClaimedKey, 'claimedFor' | 'ageMs'>,
  { nowMs, areDaysSpread }: { nowMs: number; areDaysSpread: boolean },
): boolean {
  if (ageMs >= CLAIM_LASTS_MS) return true;
  if (areDaysSpread) return false;
  const day = dayNumberOf(timeMsOf(claimedFor));
  return dayNumberOf(nowMs) === day && dayNumberOf(nowMs + STORED_WITHIN_MS) === day;
}

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
  /** SHA-256 of the body of its request, or of its item of a batch, hex. */
  bodyHash: string;
  /** The gateway process that stored it. */
  publisherId: string;
  /** Its deliveries are in order (`Message`). */
  isOrdered: boolean;
  /** How many webhooks the message goes to. */
  targetCount: number;
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
  /** The place of the record whose message claimed it; absent for a request of the API. */
  ingestedFrom?: string | undefined;
}

/** A key and who was found to have it. */
export interface HeldKey {
  key: string;
  found: KeyHolder | ClaimedKey;
}

/** The messages that have the idempotency keys of a company. Ages are by the database's clock. */
export interface KeyHolders {
  /**
   * Finds which majority-committed messages have these idempotency keys, without reading the messages. A key that nobody
   * has is missing in the result. The number of reads does not grow with the number of keys.
   */
  findKeyHolders: (
    companyId: string,
    keys: readonly string[],
  ) => Promise<Map<string, KeyHolder | ClaimedKey>>;
  /** Makes the keys free for other messages, unless that has been done since they were found. */
  releaseKeys: (companyId: string, held: readonly HeldKey[]) => Promise<void>;
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
    return [today + 1, today, today - 1].map((day) => idempotencyKeys.of(day));
  };

  return {
    async findKeyHolders(companyId, keys) {
      if (keys.length === 0) return new Map();
      const keyOfId = new Map(keys.map((key) => [keyIdOf(companyId, key), key]));
      const byId = { _id: { $in: [...keyOfId.keys()] } };
      const claims = (
        await readAll(await places(), (documents) =>
          documents.find(byId, DECIDED).project<KeyClaim & { _id: string }>(CLAIM).toArray(),
        )
      )
        .flat()
        .map((claim) => ({ ...claim, key: required(keyOfId, claim._id, 'key of the claim') }));
      return firstValidOf(claims, await readHolders(messages, companyId, claims));
    },
    async releaseKeys(companyId, held) {
      const holders = held.flatMap(({ found }) => (found.kind === 'holder' ? [found.id] : []));
      await writeByDays(
        messages,
        holders,
        (id) => id,
        (documents, ids) =>
          documentsIn<'messages'>(documents, companyId).updateMany(
            { _id: { $in: [...ids] } },
            { $unset: { idempotency: '' } },
          ),
      );
      if (held.length === 0) return;
      const removals = held.map(({ key, found }) => {
        const filter = { _id: keyIdOf(companyId, key), messageId: found.claimedFor };
        return { deleteOne: { filter } };
      });
      await readAll(await places(), (documents) =>
        documents.bulkWrite(removals, { ordered: false }),
      );
    },
  };
}

type ClaimOfKey = KeyClaim & { key: string };

/** Of the claims of a key, the first one whose message is younger than a key is kept counts; else the first one. */
function firstValidOf(
  claims: readonly ClaimOfKey[],
  holderOf: (claim: ClaimOfKey) => KeyHolder | ClaimedKey,
): Map<string, KeyHolder | ClaimedKey> {
  const isValid = (found: KeyHolder | ClaimedKey | undefined): boolean =>
    found?.kind === 'holder' && found.ageMs < KEPT_MS;
  const found = new Map<string, KeyHolder | ClaimedKey>();
  for (const claim of claims) {
    const before = found.get(claim.key);
    if (isValid(before)) continue;
    const own = holderOf(claim);
    if (!before || isValid(own)) found.set(claim.key, own);
  }
  return found;
}

/**
 * Reads which messages have the claimed keys. Returns the function that finds the one of a claim: the message that the key
 * was claimed for, or another one that has the key.
 */
async function readHolders(
  messages: Days['messages'],
  companyId: string,
  claims: readonly ClaimOfKey[],
): Promise<(claim: ClaimOfKey) => KeyHolder | ClaimedKey> {
  const findIn: FindHolders = (documents, filter) =>
    documentsIn<'messages'>(documents, companyId)
      .find(filter, DECIDED)
      .project<KeyHolderDocument>(KEY_HOLDER)
      .toArray();
  const ids = claims.map(({ messageId }) => messageId);
  const own = await readByIds(messages, ids, (documents, ofDay) =>
    findIn(documents, { _id: { $in: ofDay } }),
  );
  const byId = new Map(own.map((each) => [each._id, each]));
  const ownOf = ({ messageId, key }: ClaimOfKey): KeyHolderDocument | undefined => {
    const found = byId.get(messageId);
    return found?.idempotency?.key === key ? found : undefined;
  };
  const others = await readOthers(
    messages,
    claims.filter((claim) => !ownOf(claim)),
    findIn,
  );
  return (claim) => {
    const { messageId: claimedFor, ageMs, ingestedFrom } = claim;
    const holder = ownOf(claim);
    if (holder) return { ...toKeyHolder(holder, claimedFor), ageMs };
    const other = others.get(claim);
    if (other) return toKeyHolder(other, claimedFor);
    return {
      kind: 'claimed',
      claimedFor,
      ageMs,
      ...(ingestedFrom !== undefined && { ingestedFrom }),
    };
  };
}

type FindHolders = (
  documents: mongo.Collection<MessageDocument>,
  filter: object,
) => Promise<KeyHolderDocument[]>;

/**
 * Finds other messages that have the claimed keys, from the day of an hour before each claim on. The day is that of the
 * claim alone: further back a message that has expired may have the key, and would end a claim that still counts.
 */
async function readOthers(
  messages: Days['messages'],
  claims: readonly ClaimOfKey[],
  findIn: FindHolders,
): Promise<ReadonlyMap<ClaimOfKey, KeyHolderDocument>> {
  const others = new Map<ClaimOfKey, KeyHolderDocument>();
  const firstDayOf = ({ messageId }: ClaimOfKey): number =>
    dayNumberOf(timeMsOf(messageId) - HOUR_MS);
  for (const [day, some] of Map.groupBy(claims, firstDayOf)) {
    const around = messages.within({ fromId: firstIdAt('msg', day * DAY_MS) });
    const byKey = { 'idempotency.key': { $in: some.map(({ key }) => key) } };
    const found = (await readAll(around, (documents) => findIn(documents, byKey))).flat();
    // The oldest of several messages counts.
    const oldest = new Map(found.reverse().map((each) => [each.idempotency?.key, each]));
    for (const claim of some) {
      const other = oldest.get(claim.key);
      if (other) others.set(claim, other);
    }
  }
  return others;
}

interface KeyHolderDocument extends Pick<MessageDocument, '_id' | 'publisherId' | 'isOrdered'> {
  ageMs: number;
  idempotency?: { key: string; bodyHash: string };
  targetCount: number;
  storedBytes: number;
}

const KEY_HOLDER = {
  ageMs: { $subtract: ['$$NOW', '$createdAt'] },
  'idempotency.key': 1,
  'idempotency.bodyHash': 1,
  publisherId: 1,
  isOrdered: 1,
  targetCount: { $size: '$targets' },
  storedBytes: { $bsonSize: '$$ROOT' },
} as const;

function toKeyHolder(found: KeyHolderDocument, claimedFor: string): KeyHolder {
  const { _id: id, ageMs, idempotency, publisherId, isOrdered = false } = found;
  const { targetCount, storedBytes } = found;
  const bodyHash = idempotency?.bodyHash ?? '';
  const stored = { publisherId, isOrdered, targetCount, storedBytes };
  return { kind: 'holder', id, ageMs, bodyHash, ...stored, claimedFor };
}
