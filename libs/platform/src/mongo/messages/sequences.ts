import {
  type FoundHead,
  type Placed,
  type Sequence,
  type SequenceHead,
  sequenceIdOf,
} from '@posthorn/domain/delivery/sequence.ts';
import type { SettledDelivery } from '@posthorn/domain/delivery/settlement.ts';
import type { Waiting } from '@posthorn/domain/waiting.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import { POSITION_KEY } from '../days/day-collections.ts';
import type { Database, Days } from '../days/days.ts';
import { readAll, readByIds } from '../days/read-days.ts';
import type { DeliveryDocument, SequenceDocument } from '../documents.ts';
import { createReadDuePage, orNone } from '../read-due.ts';
import { placeOf, toDocument } from './deliveries.ts';
import { toWaiting, type WaitingDelivery } from './waiting-deliveries.ts';

export const SEQUENCE_DUE_KEY = { dueAt: 1 } as const;
export const SEQUENCE_DUE_OF_COMPANY_KEY = { companyId: 1, dueAt: 1 } as const;
export const BLOCKED_KEY = { isBlocked: 1 } as const;

/** A sequence by its place, before or while it is stored. */
export type SequencePlace = Pick<Sequence, 'companyId' | 'webhookId' | 'orderingKey'>;

/** A pending delivery of a sequence that has left the memory of its dispatcher. */
export interface Follower extends Omit<WaitingDelivery, 'position'>, Placed {
  /** Null while its attempt is under way or planned, or a record for it is. */
  waiting: Waiting | null;
}

/** A delivery that leaves memory without having ended. All before it have. */
export interface LeavingHead extends SequencePlace {
  head: SequenceHead;
}

/** A delivery that begins to wait behind another one. */
export interface NewFollower extends LeavingHead {
  /** The delivery, with its key and its position. */
  settled: SettledDelivery;
}

/** Where a page of the list begins: behind this sequence. */
export interface SequencePosition {
  sinceMs: number;
  id: string;
}

/**
 * The sequences of ordering keys, each one document while a delivery of it is not in the memory of a dispatcher, and their
 * followers (docs/decisions/0068-order-is-made-by-kafka.md). Every change may be repeated. Times are in milliseconds since
 * 1970.
 */
export interface SequenceStore extends SequenceLooks {
  /** By id. */
  findMany: (ids: readonly string[]) => Promise<Map<string, Sequence>>;
  /** Stores that these are the heads of their sequences, which it makes where they are missing. */
  setHeads: (leaving: readonly LeavingHead[], atMs: number) => Promise<void>;
  /**
   * Stores followers, those of a sequence in the given order: whatever stops in between, the stored ones are the first ones.
   * Each sequence is changed first, or made with the head that is named. A delivery that has ended, or has a record, stays
   * as it is.
   */
  addFollowers: (followers: readonly NewFollower[], atMs: number) => Promise<void>;
  /** The pending deliveries of a sequence from a position on, at most `limit`, in their order. */
  followers: (
    sequence: SequencePlace & Pick<Sequence, 'fromId'>,
    fromPosition: number,
    limit: number,
  ) => Promise<Follower[]>;
  /** The position of its last pending delivery; -1 without one. */
  lastPosition: (sequence: SequencePlace & Pick<Sequence, 'fromId'>) => Promise<number>;
  /** The heads as they are recorded, by delivery id. */
  findHeads: (heads: readonly SequenceHead[], nowMs: number) => Promise<Map<string, FoundHead>>;
  /** Deletes the sequence. Returns false when it was changed since it was read. */
  remove: (sequence: Pick<Sequence, 'id' | 'changes'>) => Promise<boolean>;
  /** Makes the retry service look at these at `dueAtMs`, or sooner. Those that are not stored have nothing that waits. */
  makeDue: (ids: readonly string[], dueAtMs: number) => Promise<void>;
  /** The same of the sequences of these deliveries, which a client ends: a second ahead before that, and now after it. */
  makeDueOf: (deliveryIds: readonly string[], dueAtMs: number) => Promise<void>;
}

/** What the looks of the retry service need. */
interface SequenceLooks {
  /** At most `limit` that are due, with a share for each company where there are more. */
  dueAt: (nowMs: number, limit: number) => Promise<Sequence[]>;
  /** Stores the next heads of sequences, and when to look at them again, unless they were changed since they were read. */
  changeMany: (changes: readonly SequenceChange[], nowMs: number) => Promise<void>;
  /** Makes those of a webhook due, all of them or the blocked ones. */
  makeAllDue: (
    webhook: Pick<Sequence, 'companyId' | 'webhookId'>,
    which: 'all' | 'blocked',
    dueAtMs: number,
  ) => Promise<void>;
  /** Removes at most `limit` sequences of these webhooks. Returns how many. */
  removeOf: (companyId: string, webhookIds: readonly string[], limit: number) => Promise<number>;
  /** How many are stored, about, and how many of them are blocked, up to `limit`. */
  estimate: (limit: number) => Promise<{ all: number; blocked: number }>;
}

export interface SequenceChange {
  sequence: Sequence;
  /** The new head; the same as before unless given. */
  head?: SequenceHead;
  isBlocked: boolean;
  againAfterMs: number;
}

/** A look before that finds a head that nothing outside its dispatcher has ended. */
const FIRST_LOOK_AFTER_MS = 3_600_000;
const PAGE = 1_000;

export function createSequenceStore(db: Database): SequenceStore {
  const sequences = collection(db, 'sequences');
  const { deliveries } = db.days;
  return {
    async findMany(ids) {
      const found = await sequences.find({ _id: { $in: [...ids] } }).toArray();
      return new Map(found.map((document) => [document._id, toSequence(document)]));
    },
    async setHeads(leaving, atMs) {
      const writes = leaving.map((each) => headUpdate(each, atMs));
      await sequences.bulkWrite(writes, { ordered: false });
    },
    async addFollowers(followers, atMs) {
      const changed = new Map(followers.map((each) => [idOfPlace(each), each]));
      const writes = [...changed.values()].map((each) => followUpdate(each, followers, atMs));
      await sequences.bulkWrite(writes, { ordered: false });
      await insertInOrder(deliveries, followers);
    },
    followers: (sequence, fromPosition, limit) =>
      readFollowers(deliveries, sequence, { fromPosition, limit, direction: 1 }),
    async lastPosition(sequence) {
      const last = { fromPosition: 0, limit: 1, direction: -1 } as const;
      return (await readFollowers(deliveries, sequence, last))[0]?.position ?? -1;
    },
    findHeads: (heads, nowMs) => findHeads(deliveries, heads, nowMs),
    async remove({ id: _id, changes }) {
      return (await sequences.deleteOne({ _id, changes })).deletedCount === 1;
    },
    async makeDue(ids, dueAtMs) {
      await sequences.updateMany({ _id: { $in: [...ids] } }, dueUpdate(dueAtMs));
    },
    async makeDueOf(deliveryIds, dueAtMs) {
      const ids = await sequencesOf(deliveries, deliveryIds);
      if (ids.length === 0) return;
      await sequences.updateMany({ _id: { $in: ids } }, dueUpdate(dueAtMs));
    },
    ...createLooks(db),
  };
}

type Sequences = mongo.Collection<SequenceDocument>;
type SequenceWrite = mongo.AnyBulkWriteOperation<SequenceDocument>;
type Deliveries = Days['deliveries'];

export const idOfPlace = ({ webhookId, orderingKey }: SequencePlace): string =>
  sequenceIdOf(webhookId, orderingKey);

/** What depends on the time at which a dispatcher changes the sequence. */
function changedAt(atMs: number) {
  return {
    isBlocked: false,
    dueAt: new Date(atMs + FIRST_LOOK_AFTER_MS),
    lookAfterMs: FIRST_LOOK_AFTER_MS,
  };
}

function headUpdate({ head, ...place }: LeavingHead, atMs: number): SequenceWrite {
  const { companyId, webhookId, orderingKey } = place;
  const at = new Date(atMs);
  return {
    updateOne: {
      filter: { _id: idOfPlace(place) },
      update: {
        $set: { head, ...changedAt(atMs), updatedAt: at },
        $setOnInsert: { companyId, webhookId, orderingKey, since: at },
        $min: { fromId: head.deliveryId },
        $inc: { changes: 1 },
      },
      upsert: true,
    },
  };
}

function followUpdate(
  { companyId, webhookId, orderingKey, head }: NewFollower,
  followers: readonly NewFollower[],
  atMs: number,
): SequenceWrite {
  const _id = sequenceIdOf(webhookId, orderingKey);
  const own = followers.filter((each) => idOfPlace(each) === _id);
  const ids = own.map(({ settled }) => settled.id);
  const fromId = ids.reduce((least, id) => (id < least ? id : least), head.deliveryId);
  const at = new Date(atMs);
  return {
    updateOne: {
      filter: { _id },
      update: {
        $set: { updatedAt: at },
        $setOnInsert: { companyId, webhookId, orderingKey, head, since: at, ...changedAt(atMs) },
        $min: { fromId },
        $inc: { changes: 1 },
      },
      upsert: true,
    },
  };
}

/** Those of one day are one write. Later ones are written when all before them are stored. */
async function insertInOrder(
  deliveries: Deliveries,
  followers: readonly NewFollower[],
): Promise<void> {
  for (let from = 0; from < followers.length;) {
    const first = followers[from];
    if (!first) return;
    const documents = deliveries.of(first.settled.id);
    const isElsewhere = ({ settled }: NewFollower): boolean =>
      deliveries.of(settled.id).collectionName !== documents.collectionName;
    const length = followers.slice(from).findIndex(isElsewhere);
    const end = length < 0 ? followers.length : from + length;
    await insertOfDay(
      documents,
      followers.slice(from, end).map(({ settled }) => settled),
    );
    from = end;
  }
}

/**
 * Three requests, however many are stored already: after a take-over they may be all of them. One that is inserted meanwhile
 * ends the insert with an error, and the repeat finds it.
 */
async function insertOfDay(
  documents: mongo.Collection<DeliveryDocument>,
  batch: readonly SettledDelivery[],
): Promise<void> {
  const ids = batch.map(({ id }) => id);
  const found = documents.find({ _id: { $in: ids } }).project<{ _id: string }>({ _id: 1 });
  const stored = new Set((await found.toArray()).map(({ _id }) => _id));
  const updates = batch.filter(({ id }) => stored.has(id)).flatMap(waitUpdates);
  if (updates.length > 0) await documents.bulkWrite(updates, { ordered: true });
  const missing = batch.filter(({ id }) => !stored.has(id));
  // An ordered insert ends with the first one that fails: what is stored is a beginning of the followers.
  if (missing.length > 0) await documents.insertMany(missing.map(toDocument), { ordered: true });
}

/**
 * A delivery that has not gone on waits, or waits again: whatever record it has may have been dropped as a copy of the one
 * that is stored here. It keeps its position; only a document that is older than its place, as that of a replay, gets one.
 */
function waitUpdates(settled: SettledDelivery): mongo.AnyBulkWriteOperation<DeliveryDocument>[] {
  const { _id, attemptCount, nextAttemptAt, updatedAt, waiting, waitingSince } =
    toDocument(settled);
  const wait = {
    nextAttemptAt,
    updatedAt,
    ...(waiting && waitingSince && { waiting, waitingSince }),
  };
  const filter = { _id, status: 'pending' as const, attemptCount };
  const place = { $set: placeOf(settled) };
  return [
    { updateOne: { filter: { ...filter, position: { $exists: false } }, update: place } },
    { updateOne: { filter, update: { $set: wait } } },
  ];
}

interface FollowerRead {
  fromPosition: number;
  limit: number;
  direction: 1 | -1;
}

/** Positions follow the days of ids nearly always, and not at midnight, after a replay, and by the clocks of gateways. */
async function readFollowers(
  deliveries: Deliveries,
  { webhookId, orderingKey, fromId }: SequencePlace & Pick<Sequence, 'fromId'>,
  { fromPosition, limit, direction }: FollowerRead,
): Promise<Follower[]> {
  const days = deliveries.within(deliveries.kept({ fromId }, 'dlv'));
  const filter = {
    webhookId,
    orderingKey,
    status: 'pending' as const,
    position: { $gte: fromPosition },
  };
  const found = await readAll(days, (documents) => {
    const cursor = documents.find(filter).sort({ position: direction }).hint(POSITION_KEY);
    const outlines = cursor.limit(limit).project<DeliveryDocument>({ attempts: 0 });
    return orNone(outlines.toArray());
  });
  const inOrder = found.flat().map(toFollower);
  return inOrder.sort((a, b) => direction * (a.position - b.position)).slice(0, limit);
}

function toFollower(document: DeliveryDocument): Follower {
  const { _id: deliveryId, position = 0, waiting = null } = document;
  return { ...toWaiting(document), deliveryId, position, waiting };
}

type HeadDocument = Pick<DeliveryDocument, '_id' | 'status' | 'attemptCount' | 'waiting'>;

async function findHeads(
  deliveries: Deliveries,
  heads: readonly SequenceHead[],
  nowMs: number,
): Promise<Map<string, FoundHead>> {
  const ids = heads.map(({ deliveryId }) => deliveryId);
  const found = await readByIds(deliveries, ids, (documents, ofDay) =>
    documents
      .find({ _id: { $in: ofDay } })
      .project<HeadDocument>({ status: 1, attemptCount: 1, waiting: 1 })
      .toArray(),
  );
  const recorded = new Map(
    found.map(({ _id, status, attemptCount, waiting = null }) => [
      _id,
      { status, attemptCount, waiting },
    ]),
  );
  const stateOf = ({ deliveryId, removeAtMs }: SequenceHead): FoundHead => {
    const state = recorded.get(deliveryId);
    if (state) return state;
    const isKept = deliveries.isKept(deliveryId) && (removeAtMs ?? Infinity) > nowMs;
    return isKept ? 'missing' : 'removed';
  };
  return new Map(heads.map((head) => [head.deliveryId, stateOf(head)]));
}

/** The next look comes at once, and the ones behind it a second later, two seconds later, … */
export function dueUpdate(dueAtMs: number): mongo.UpdateFilter<SequenceDocument> {
  return { $min: { dueAt: new Date(dueAtMs) }, $set: { lookAfterMs: 0 }, $inc: { changes: 1 } };
}

function createLooks(db: Database): SequenceLooks {
  const sequences = collection(db, 'sequences');
  const readDue = createReadDuePage<SequenceDocument>({
    filter: {},
    at: 'dueAt',
    key: SEQUENCE_DUE_KEY,
    ofCompanyKey: SEQUENCE_DUE_OF_COMPANY_KEY,
  });
  return {
    dueAt: async (nowMs, limit) => (await readDue(sequences, nowMs, limit)).map(toSequence),
    async changeMany(changes, nowMs) {
      if (changes.length === 0) return;
      const writes = changes.map((change) => changeUpdate(change, nowMs));
      await sequences.bulkWrite(writes, { ordered: false });
    },
    async makeAllDue(webhook, which, dueAtMs) {
      await makeBlockDue(sequences, { ...webhook, isBlocked: true }, dueAtMs);
      if (which === 'all') await makeBlockDue(sequences, { ...webhook, isBlocked: false }, dueAtMs);
    },
    async removeOf(companyId, webhookIds, limit) {
      const own = documentsOf(db, 'sequences', companyId);
      const found = own.find({ webhookId: { $in: [...webhookIds] } }, { limit });
      const ids = (await found.project<{ _id: string }>({ _id: 1 }).toArray()).map(
        ({ _id }) => _id,
      );
      return ids.length === 0 ? 0 : own.deleteMany({ _id: { $in: ids } });
    },
    async estimate(limit) {
      const blocked = await sequences.countDocuments(
        { isBlocked: true },
        { limit, hint: BLOCKED_KEY },
      );
      return { all: await sequences.estimatedDocumentCount(), blocked };
    },
  };
}

function changeUpdate(
  { sequence: { id: _id, changes }, head, isBlocked, againAfterMs }: SequenceChange,
  nowMs: number,
): SequenceWrite {
  const dueAt = new Date(nowMs + againAfterMs);
  const look = { isBlocked, dueAt, lookAfterMs: againAfterMs };
  const moved = head && { head, updatedAt: new Date(nowMs) };
  return {
    updateOne: {
      filter: { _id, changes },
      update: { $set: { ...look, ...moved }, $inc: { changes: 1 } },
    },
  };
}

/** The ids of the sequences in which these deliveries have a place. */
async function sequencesOf(
  deliveries: Deliveries,
  deliveryIds: readonly string[],
): Promise<string[]> {
  type Place = Pick<DeliveryDocument, '_id' | 'webhookId' | 'orderingKey'>;
  const found = await readByIds(deliveries, deliveryIds, (documents, ofDay) =>
    documents
      .find({ _id: { $in: ofDay }, position: { $exists: true } })
      .project<Place>({ webhookId: 1, orderingKey: 1 })
      .toArray(),
  );
  const ids = found.map(({ webhookId, orderingKey = '' }) => sequenceIdOf(webhookId, orderingKey));
  return [...new Set(ids)];
}

/** In pages, the oldest first: an endpoint that fails for weeks may block 100,000 keys. */
async function makeBlockDue(
  sequences: Sequences,
  of: Pick<Sequence, 'companyId' | 'webhookId' | 'isBlocked'>,
  dueAtMs: number,
): Promise<void> {
  for (let after: SequencePosition | undefined; ;) {
    const found = sequences.find({ ...of, ...behind(after) }).sort({ since: 1, _id: 1 });
    const outlines = found
      .limit(PAGE)
      .project<Pick<SequenceDocument, '_id' | 'since'>>({ since: 1 });
    const page = await outlines.toArray();
    const last = page.at(-1);
    if (!last) return;
    const ids = page.map(({ _id }) => _id);
    await sequences.updateMany({ _id: { $in: ids } }, dueUpdate(dueAtMs));
    after = { id: last._id, sinceMs: last.since.getTime() };
  }
}

export function behind(after: SequencePosition | undefined): object {
  if (!after) return {};
  const since = new Date(after.sinceMs);
  return {
    since: { $gte: since },
    $or: [{ since: { $gt: since } }, { since, _id: { $gt: after.id } }],
  };
}

export function toSequence(document: SequenceDocument): Sequence {
  const { _id, dueAt, since, updatedAt, ...same } = document;
  const times = {
    dueAtMs: dueAt.getTime(),
    sinceMs: since.getTime(),
    updatedAtMs: updatedAt.getTime(),
  };
  return { id: _id, ...same, ...times };
}
