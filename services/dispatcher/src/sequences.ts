import {
  type Arrival,
  decideArrival,
  type Ordering,
  type Placed,
  positionOf,
  type SequenceHead,
  sequenceIdOf,
} from '@posthorn/domain/delivery/sequence.ts';
import { settleWaiting } from '@posthorn/domain/delivery/settlement.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import { StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import type { IsOurs, LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { Follower, SequencePlace } from '@posthorn/platform/mongo/messages/sequences.ts';
import type { SequenceMetrics } from './metrics.ts';
import type { Stored, StoredSequences } from './stored-sequences.ts';

interface SequencesDeps {
  store: StoredSequences;
  messageCreatedTopic: string;
  /** Null when the webhook was deleted. */
  orderingOf: (webhookId: string) => Promise<Ordering | null>;
  /** False while followers are to leave memory. */
  hasMemory: () => boolean;
  /** Calls `run` once, after this time. */
  later: (ms: number, run: () => void) => void;
  metrics: SequenceMetrics;
  /** The time of the database. */
  nowMs: () => number;
  monotonicMs: () => number;
}

/** A record with an ordering key that enters its sequence. */
export interface Entering {
  record: LogRecord;
  due: DueAttempt;
  isOurs: IsOurs;
}

/** The place of a record in its sequence. */
export interface Place {
  /**
   * Resolves to `begin` when everything in front has ended; to `done` when the delivery waits as a document, or another
   * record of the attempt is in memory. Rejects with StoppedError when the partition has gone. `dropPayload` frees the
   * payload of one that waits.
   */
  turn: (dropPayload: () => void) => Promise<'begin' | 'done'>;
  /** To be called when the success of the endpoint is read: the next one begins, although nothing is recorded yet. */
  succeeded: () => void;
  /** To be awaited before anything is stored or published of a delivery that leaves memory and has not ended. */
  leave: () => Promise<void>;
  /**
   * To be called when the outcome is recorded. Resolves when the next one is in memory or published, or there is none:
   * then the offset may be committed.
   */
  end: () => Promise<void>;
  /** To be called when the work on the record has failed. The place is kept as long as the partition. */
  fail: () => void;
}

/** Followers of one key that wait in memory. */
const MAX_OF_KEY = 16;
/** A quarter of the records in flight: a company with many busy keys does not stop the reading of others. */
export const MAX_FOLLOWERS = 12_500;
/** Longer than nearly all requests. A head that takes longer costs each follower two writes. */
const IN_MEMORY_MS = 5_000;
const KEEP_PAYLOAD_MS = 1_000;
const TICK_MS = 500;
/** A backlog is refilled when so many of its deliveries are left in memory. */
const REFILLED_AT = 8;

/** A record of a sequence in memory. */
interface Entry extends Entering {
  dropPayload: () => void;
  /** Null until the sequence was read, and for one that goes its way without an order. */
  position: number | null;
  /**
   * `ended`: its success is read, and may not be recorded yet. `failed`: its record stays uncommitted until it is handled or
   * its partition is read again, and nothing behind it begins before.
   */
  state: 'arrived' | 'following' | 'storing' | 'begun' | 'ended' | 'failed';
  /** How many times the sequence had been read when it arrived. */
  readsBefore: number;
  /** By the monotonic clock; Infinity before it follows. */
  followsSinceMs: number;
  hasBegun: boolean;
  /** It is stored as a delivery that has left memory: a second record of its attempt is what comes next of it. */
  isLeaving: boolean;
  turn: PromiseWithResolvers<'begin' | 'done'>;
}

/** The deliveries of one key to one webhook, while a record of any is in memory. */
interface KeyInMemory {
  id: string;
  place: SequencePlace;
  /** Whether its partition is still the one whose record came last. */
  isOurs: IsOurs;
  /** In the order in which they arrived. */
  entries: Entry[];
  /** Null without a document. */
  stored: Stored | null;
  /** Nothing may be decided before `stored` is read again. */
  isStale: boolean;
  /** How many times it has become stale. */
  changes: number;
  reads: number;
  ordering: Ordering | null;
  /** Everything up to this position has ended, although it may not be recorded yet. */
  endedTo: number;
  /** The ids of deliveries whose records were published here and have not come yet. */
  released: Set<string>;
  /** When the last success was read, by the monotonic clock; null when nothing waited for it. */
  steppedAtMs: number | null;
  isDirty: boolean;
  working: Promise<void> | null;
}

/**
 * Keeps deliveries with an ordering key in the order of their records (docs/contract.md C29). This process reads all records
 * of a webhook, so it knows the order without asking anybody.
 *
 * 1. Arrive: a record enters in the order of offsets, before the first `await` of its handling. Nowhere else is the order
 *    made. The first one of a key reads the document of its sequence.
 * 2. Follow in memory: the head has its attempt, and the others wait for it. When its success is read, the next one begins.
 *    Nothing is written for the sequence.
 * 3. Leave memory: when the head has not ended with its attempt, and when followers wait for too long or are too many. The
 *    sequence is stored first, the delivery second, the offset third. While followers are stored, every delivery but the head
 *    has a document, and the sequence names a head that has none: so the store alone says what comes next.
 * 4. Refill: when the head has ended, the first followers are published, in their order, and come back as records. The record
 *    of a head is done only when the next one is in memory, published, or known to be missing.
 *
 * A record never decides the order: one that comes too early is stored again at its own position. What ends a head in another
 * process makes its sequence due for the retry service (look-at-sequences.ts).
 */
export class Sequences {
  readonly #deps: SequencesDeps;
  readonly #keys = new Map<string, KeyInMemory>();
  readonly #byRecord = new WeakMap<LogRecord, Entry>();
  readonly #byAttempt = new Map<string, Entry>();
  /** Those that wait in memory with their keys, the first one first. */
  readonly #followers = new Map<Entry, KeyInMemory>();
  #isTicking = false;
  readonly #store: StoredSequences;

  constructor(deps: SequencesDeps) {
    this.#deps = deps;
    this.#store = deps.store;
  }

  /** Returns the place of a record; null for one that has none. To be called in the order of offsets. */
  enter(entering: Entering): Place | null {
    const { record, due } = entering;
    const { orderingKey, attemptId, trigger } = due;
    if (orderingKey === undefined || trigger === 'resend' || trigger === 'test') return null;
    const key = this.#keyOf(entering, orderingKey);
    const known = this.#byRecord.get(record);
    if (known && key.entries.includes(known)) return this.#placeOf(key, handledAgain(known));
    // Whoever has the first one has not committed it. One that leaves memory may be published already: from its document, or
    // to the slow lane, whose record comes before the first one has ended here.
    const twin = this.#byAttempt.get(attemptId);
    if (twin?.isOurs() && twin.state !== 'storing' && !twin.isLeaving) return COPY;
    const entry: Entry = {
      ...entering,
      dropPayload: nothing,
      position: null,
      state: 'arrived',
      readsBefore: key.reads,
      followsSinceMs: Infinity,
      hasBegun: false,
      isLeaving: false,
      turn: turnOf(),
    };
    key.entries.push(entry);
    key.released.delete(due.deliveryId);
    this.#byRecord.set(record, entry);
    this.#byAttempt.set(attemptId, entry);
    return this.#placeOf(key, entry);
  }

  /** Makes the retry service look at the sequence of a delivery that has ended outside its order. */
  async wake({ webhookId, orderingKey }: DueAttempt): Promise<void> {
    if (orderingKey === undefined) return;
    await this.#store.makeDue(sequenceIdOf(webhookId, orderingKey));
  }

  /** The number of followers in memory. */
  followers(): number {
    return this.#followers.size;
  }

  #keyOf({ due, isOurs }: Entering, orderingKey: string): KeyInMemory {
    const { companyId, webhookId } = due;
    const id = sequenceIdOf(webhookId, orderingKey);
    const known = this.#keys.get(id);
    if (known) {
      if (!known.isOurs()) ownAgain(known);
      return Object.assign(known, { isOurs });
    }
    const key: KeyInMemory = {
      id,
      place: { companyId, webhookId, orderingKey },
      isOurs,
      entries: [],
      stored: null,
      isStale: true,
      changes: 0,
      reads: 0,
      ordering: null,
      endedTo: -1,
      released: new Set(),
      steppedAtMs: null,
      isDirty: false,
      working: null,
    };
    this.#keys.set(id, key);
    return key;
  }

  #placeOf(key: KeyInMemory, entry: Entry): Place {
    return {
      turn: (dropPayload) => {
        entry.dropPayload = dropPayload;
        this.#workOn(key).catch(nothing);
        return entry.turn.promise;
      },
      succeeded: () => {
        if (entry.position === null) return;
        key.endedTo = Math.max(key.endedTo, entry.position);
        entry.state = 'ended';
        key.steppedAtMs = this.#deps.monotonicMs();
        if (!key.isStale) this.#decideAll(key);
      },
      leave: () => this.#leave(key, entry),
      end: () => this.#end(key, entry),
      fail: () => {
        if (entry.state === 'begun') entry.state = 'failed';
        if (!entry.isOurs()) this.#remove(key, [entry]);
        this.#workOn(key).catch(nothing);
      },
    };
  }

  async #leave(key: KeyInMemory, entry: Entry): Promise<void> {
    const { due, position } = entry;
    // One that goes its way without an order is in no sequence.
    if (position === null) return;
    entry.isLeaving = true;
    due.position = position;
    if (key.stored?.sequence.head.deliveryId === due.deliveryId) return;
    await this.#store.setHead({ ...key.place, head: headOf(due, position) });
  }

  async #end(key: KeyInMemory, entry: Entry): Promise<void> {
    if (entry.position === null) return;
    if (entry.state !== 'ended') readAgain(key);
    this.#remove(key, [entry]);
    await this.#workOn(key);
    // The new owner may have stored followers behind it.
    if (!entry.isOurs()) await this.#store.makeDue(key.id);
  }

  #remove(key: KeyInMemory, removed: readonly Entry[]): void {
    const gone = new Set(removed);
    key.entries = key.entries.filter((each) => !gone.has(each));
    for (const entry of removed) {
      this.#followers.delete(entry);
      const { attemptId } = entry.due;
      if (this.#byAttempt.get(attemptId) === entry) this.#byAttempt.delete(attemptId);
    }
  }

  /** Resolves when everything that is known now is decided and stored. One works on a key at a time. */
  #workOn(key: KeyInMemory): Promise<void> {
    key.isDirty = true;
    key.working ??= this.#work(key);
    return key.working;
  }

  async #work(key: KeyInMemory): Promise<void> {
    try {
      while (key.isDirty) {
        key.isDirty = false;
        await this.#step(key);
      }
    } catch (error) {
      for (const entry of key.entries.filter(isWaiting)) {
        entry.state = 'failed';
        this.#followers.delete(entry);
        entry.turn.reject(error);
      }
      readAgain(key);
      throw error;
    } finally {
      // In the same instant in which nothing was left to do: whoever comes next begins anew.
      key.working = null;
      if (key.entries.length === 0 && this.#keys.get(key.id) === key) this.#keys.delete(key.id);
    }
  }

  async #step(key: KeyInMemory): Promise<void> {
    this.#dropLost(key);
    key.ordering = await this.#deps.orderingOf(key.place.webhookId);
    if (key.ordering === 'none' || key.ordering === null) this.#passFresh(key);
    // Nothing is decided by what was read before a delivery has left memory.
    while (key.isStale) {
      const { changes } = key;
      key.reads += 1;
      key.stored = await this.#store.read(key.id, () => key);
      key.isStale = changes !== key.changes;
    }
    // The partition may have gone meanwhile, and may come back.
    this.#dropLost(key);
    const toStore = this.#decideAll(key);
    if (toStore.length === 0) {
      await this.#goOn(key);
      return;
    }
    // The retry service may have gone on since it was read.
    if (toStore.every(({ readsBefore }) => readsBefore < key.reads)) {
      await this.#leaveMemory(key, toStore);
    }
    readAgain(key);
  }

  /** The next owner reads them again. What has begun ends as the work of a former owner. */
  #dropLost(key: KeyInMemory): void {
    const lost = key.entries.filter(
      (entry) => !entry.isOurs() && (isWaiting(entry) || entry.state === 'failed'),
    );
    if (lost.length === 0) return;
    this.#remove(key, lost);
    const gone = new StoppedError('the partition has gone while its key was busy');
    for (const { turn } of lost) turn.reject(gone);
  }

  /** Later messages have no order any more; what is stored keeps its own. */
  #passFresh(key: KeyInMemory): void {
    const passed = key.entries.filter(
      (entry) => entry.due.position === undefined && isUndecided(entry),
    );
    this.#remove(key, passed);
    for (const entry of passed) {
      entry.position = null;
      entry.state = 'begun';
      entry.turn.resolve('begin');
    }
  }

  /** Begins what may begin, and returns what is to leave memory, in its order. */
  #decideAll(key: KeyInMemory): Entry[] {
    this.#placeAll(key);
    const undecided = key.entries
      .filter((entry) => isUndecided(entry) && entry.isOurs())
      .toSorted(byPosition);
    const arrivals = this.#arrivals(key, undecided);
    const isStoring = arrivals.includes('store');
    const planned = new Set(key.stored?.plan.map(({ deliveryId }) => deliveryId));
    return undecided.filter((entry, index) => {
      if (arrivals[index] === 'begin') this.#begin(key, entry);
      // Of two followers of which one is stored, the first one is.
      else if (arrivals[index] === 'store' || (isStoring && !planned.has(entry.due.deliveryId))) {
        return true;
      } else this.#follow(key, entry);
      return false;
    });
  }

  #arrivals(key: KeyInMemory, undecided: readonly Entry[]): Arrival[] {
    const undone = key.entries.filter(isUndone);
    const memory = new Set(undone.map(({ due }) => due.deliveryId));
    const inMemoryFrom = undone.reduce((first, each) => {
      const position = positionIn(each);
      return position > key.endedTo ? Math.min(first, position) : first;
    }, Infinity);
    const isStored = (each: Placed): boolean => !memory.has(each.deliveryId);
    const storedFrom = aheadIn(key).find(isStored)?.position ?? Infinity;
    const { isWhole = true, plan = [] } = key.stored ?? {};
    const planEnd = isWhole ? Infinity : (plan.at(-1)?.position ?? -1);
    const ofKey = undone.filter(isWaiting).length;
    return undecided.map((entry) => {
      const position = positionIn(entry);
      return decideArrival({
        isAnyStored: storedFrom < position || planEnd < position,
        isAnyInMemory: inMemoryFrom < position,
        hasRoom: this.#hasRoom(entry, ofKey),
      });
    });
  }

  #hasRoom({ state, followsSinceMs }: Entry, ofKey: number): boolean {
    const { hasMemory, monotonicMs } = this.#deps;
    if (state === 'following') return monotonicMs() - followsSinceMs < IN_MEMORY_MS;
    return ofKey <= MAX_OF_KEY && this.#followers.size < MAX_FOLLOWERS && hasMemory();
  }

  /** Gives each entry its position. A record that is read again has that of its document, or of its attempt under way. */
  #placeAll(key: KeyInMemory): void {
    const { stored, entries } = key;
    const inMemory = entries.flatMap(({ due: { deliveryId }, position }): Placed[] =>
      position === null ? [] : [{ deliveryId, position }],
    );
    const placed = [...inMemory, ...(stored ? [stored.sequence.head, ...stored.plan] : [])];
    const known = new Map(placed.map(({ deliveryId, position }) => [deliveryId, position]));
    let lastPosition = entries.reduce(
      (last, { position }) => Math.max(last, position ?? -1),
      Math.max(key.endedTo, stored?.lastPosition ?? -1),
    );
    for (const entry of entries) {
      if (entry.position !== null) continue;
      const { due, record } = entry;
      const offset = record.topic === this.#deps.messageCreatedTopic ? record.offset : null;
      entry.position =
        due.position ?? known.get(due.deliveryId) ?? positionOf({ offset, lastPosition });
      lastPosition = Math.max(lastPosition, entry.position);
    }
  }

  #begin(key: KeyInMemory, entry: Entry): void {
    this.#followers.delete(entry);
    entry.state = 'begun';
    entry.hasBegun = true;
    if (key.steppedAtMs !== null && entry.followsSinceMs !== Infinity) {
      this.#deps.metrics.onStep(this.#deps.monotonicMs() - key.steppedAtMs);
    }
    key.steppedAtMs = null;
    entry.turn.resolve('begin');
  }

  #follow(key: KeyInMemory, entry: Entry): void {
    if (entry.state === 'following') return;
    entry.state = 'following';
    entry.followsSinceMs = this.#deps.monotonicMs();
    this.#followers.set(entry, key);
    this.#deps.metrics.onFollower('memory');
    this.#tickLater();
  }

  /** Stores followers, each with all before it. */
  async #leaveMemory(key: KeyInMemory, toStore: readonly Entry[]): Promise<void> {
    for (const entry of toStore) entry.state = 'storing';
    const head = await this.#nameHead(key);
    const { nowMs, metrics } = this.#deps;
    const followers = toStore.map((entry) => {
      entry.due.position = positionIn(entry);
      return { ...key.place, head, settled: settleWaiting(entry.due, 'order', nowMs()) };
    });
    await this.#store.addFollowers(followers);
    this.#remove(key, toStore);
    for (const { turn } of toStore) {
      metrics.onFollower('stored');
      turn.resolve('done');
    }
  }

  /** The store names a head that only memory has: otherwise it would go on with the followers behind it. */
  async #nameHead(key: KeyInMemory): Promise<SequenceHead> {
    const inWork = key.entries.filter(({ state }) => state === 'begun' || state === 'failed');
    const [first] = inWork.toSorted(byPosition);
    const stored = key.stored?.sequence.head;
    if (stored && (!first || aheadIn(key).length > 0)) return stored;
    if (!first) throw new ImpossibleError(`a follower of ${key.id} waits for nothing`);
    const head = headOf(first.due, positionIn(first));
    await this.#store.setHead({ ...key.place, head });
    return head;
  }

  /** Publishes the next followers when everything in front of them has ended, or deletes a sequence without any. */
  async #goOn(key: KeyInMemory): Promise<void> {
    const { stored } = key;
    if (!stored) return;
    const undone = key.entries.filter(isUndone);
    const [next] = aheadIn(key);
    if (!next) {
      if (!stored.isWhole) readAgain(key);
      else if (undone.length === 0) await this.#finish(key, stored);
      return;
    }
    if (stored.blocker === next || undone.some((entry) => positionIn(entry) < next.position))
      return;
    // Those behind a retry would come in vain when it fails.
    const isNext = ({ due }: Entry): boolean => due.deliveryId === next.deliveryId;
    if (undone.some((entry) => isNext(entry) && entry.due.attemptNumber > 1)) return;
    const { ready, coming, left } = reachOf(key, stored, undone);
    if (coming > REFILLED_AT) return;
    for (const { deliveryId } of ready) key.released.add(deliveryId);
    if (ready.length > 0) await this.#store.publish(ready);
    for (const follower of ready) follower.waiting = null;
    if (!stored.isWhole && left <= REFILLED_AT) readAgain(key);
  }

  async #finish(key: KeyInMemory, { sequence }: Stored): Promise<void> {
    if (await this.#store.remove(sequence)) key.stored = null;
    else readAgain(key);
  }

  #tickLater(): void {
    if (this.#isTicking) return;
    this.#isTicking = true;
    this.#deps.later(TICK_MS, () => {
      this.#isTicking = false;
      this.#tick();
    });
  }

  /** Frees the payloads of those that wait for a second, and stores those that wait for too long. */
  #tick(): void {
    const nowMs = this.#deps.monotonicMs();
    const due = new Set<KeyInMemory>();
    for (const [entry, key] of this.#followers) {
      const waitedMs = nowMs - entry.followsSinceMs;
      if (waitedMs >= KEEP_PAYLOAD_MS) entry.dropPayload();
      if (waitedMs >= IN_MEMORY_MS || !entry.isOurs()) due.add(key);
    }
    for (const key of due) this.#workOn(key).catch(nothing);
    if (this.#followers.size > 0) this.#tickLater();
  }
}

const nothing = (): void => undefined;
const COPY: Place = {
  turn: () => Promise.resolve('done'),
  succeeded: nothing,
  leave: () => Promise.resolve(),
  end: () => Promise.resolve(),
  fail: nothing,
};

/** A record that is handled again after a failure keeps its place. */
function handledAgain(entry: Entry): Entry {
  if (entry.state !== 'failed') return entry;
  entry.state = entry.hasBegun ? 'begun' : 'arrived';
  if (!entry.hasBegun) entry.turn = turnOf();
  return entry;
}

function turnOf(): Entry['turn'] {
  const turn: Entry['turn'] = Promise.withResolvers();
  // Whoever waits for it learns of a failure; nobody may.
  turn.promise.catch(nothing);
  return turn;
}

/** What is being read at this moment is out of date as well. */
function readAgain(key: KeyInMemory): void {
  key.isStale = true;
  key.changes += 1;
  key.isDirty = true;
}

/** The partition has gone and come back: another owner may have gone on, and have stored what was published here. */
function ownAgain(key: KeyInMemory): void {
  key.released.clear();
  readAgain(key);
}

function isUndecided({ state }: Entry): boolean {
  return state === 'arrived' || state === 'following';
}

/** It has no attempt yet. */
function isWaiting(entry: Entry): boolean {
  return isUndecided(entry) || entry.state === 'storing';
}

function isUndone({ state }: Entry): boolean {
  return state !== 'ended';
}

/** Returns the followers to be published, how many others are in memory or on their way, and how many have not ended. */
function reachOf(
  { endedTo, released }: KeyInMemory,
  { plan }: Stored,
  undone: readonly Entry[],
): { ready: Follower[]; coming: number; left: number } {
  const memory = new Set(undone.map(({ due }) => due.deliveryId));
  const isComing = ({ deliveryId }: Follower): boolean =>
    memory.has(deliveryId) || released.has(deliveryId);
  const ahead = plan.filter(({ position }) => position > endedTo);
  // One that is neither has its attempts, or is on hold.
  const end = ahead.findIndex((each) => !isComing(each) && each.waiting !== 'order');
  const inReach = end < 0 ? ahead : ahead.slice(0, end);
  const ready = inReach.filter((each) => !isComing(each));
  return { ready, coming: inReach.length - ready.length, left: ahead.length };
}

/** The stored deliveries that have not ended, in their order. */
function aheadIn({ stored, endedTo }: KeyInMemory): Placed[] {
  if (!stored) return [];
  const all: Placed[] = stored.blocker ? [stored.blocker, ...stored.plan] : stored.plan;
  return all.filter(({ position }) => position > endedTo);
}

function positionIn({ position }: Entry): number {
  return position ?? Infinity;
}

function byPosition(a: Entry, b: Entry): number {
  return positionIn(a) - positionIn(b);
}

function headOf({ deliveryId, messageId, removeAtMs }: DueAttempt, position: number): SequenceHead {
  return { deliveryId, messageId, position, ...(removeAtMs !== undefined && { removeAtMs }) };
}
