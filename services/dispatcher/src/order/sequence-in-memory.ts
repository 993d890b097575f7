import type { Ordering, SequenceHead } from '@posthorn/domain/delivery/sequence.ts';
import { settleWaiting } from '@posthorn/domain/delivery/settlement.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import { StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import type { IsOurs } from '@posthorn/platform/kafka/record-log.ts';
import type { Follower, SequencePlace } from '@posthorn/platform/mongo/messages/sequences.ts';
import type { SequenceMetrics } from '../metrics.ts';
import type { FollowersInMemory } from './followers-in-memory.ts';
import {
  decideArrivals,
  decideRefill,
  findPositions,
  headInMemory,
  type SequenceView,
} from './order-rules.ts';
import { type Entering, isUndecided, isWaiting, SequenceEntry } from './sequence-entry.ts';
import type { Stored, StoredSequences } from './stored-sequences.ts';

/** What all sequences of a dispatcher share. */
export interface SequenceParts {
  store: StoredSequences;
  followers: FollowersInMemory;
  messageCreatedTopic: string;
  /** Null when the webhook was deleted. */
  orderingOf: (webhookId: string) => Promise<Ordering | null>;
  metrics: SequenceMetrics;
  /** Called for each record that is in no sequence any more. */
  onLeft: (entry: SequenceEntry) => void;
  /** Called when a sequence has no record in memory. */
  onEmpty: (sequence: SequenceInMemory) => void;
  /** The time of the database. */
  nowMs: () => number;
  monotonicMs: () => number;
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

/**
 * The deliveries of one key to one webhook, while a record of any is in memory. The rules of order-rules.ts decide what is
 * done. This class does it: it begins and stores records, writes the sequence, and publishes what is stored.
 */
export class SequenceInMemory {
  readonly id: string;
  readonly #place: SequencePlace;
  readonly #parts: SequenceParts;
  /** Whether its partition is still the one whose record came last. */
  #isOurs: IsOurs;
  /** In the order in which they arrived. */
  #entries: SequenceEntry[] = [];
  /** Null without a document. */
  #stored: Stored | null = null;
  /** Nothing may be decided before `#stored` is read again. */
  #isStale = true;
  /** How many times it has become stale. */
  #changes = 0;
  #reads = 0;
  #ordering: Ordering | null = null;
  /** Everything up to this position has ended, although it may not be recorded yet. */
  #endedTo = -1;
  /** The ids of deliveries whose records were published here and have not come yet. */
  readonly #released = new Set<string>();
  /** When the last success was read, by the monotonic clock; null when nothing waited for it. */
  #steppedAtMs: number | null = null;
  #isDirty = false;
  #working: Promise<void> | null = null;

  constructor(parts: SequenceParts, id: string, place: SequencePlace, isOurs: IsOurs) {
    this.#parts = parts;
    this.id = id;
    this.#place = place;
    this.#isOurs = isOurs;
  }

  /** To be called for each record of the key, with the partition from which it comes. */
  setPartition(isOurs: IsOurs): void {
    // It has gone and come back: another owner may have gone on, and have stored what was published here.
    if (!this.#isOurs()) {
      this.#released.clear();
      this.#readAgain();
    }
    this.#isOurs = isOurs;
  }

  /** Adds a record behind all others. */
  add(entering: Entering): SequenceEntry {
    const entry = new SequenceEntry(entering, this.#reads);
    this.#entries.push(entry);
    this.#released.delete(entering.due.deliveryId);
    return entry;
  }

  has(entry: SequenceEntry): boolean {
    return this.#entries.includes(entry);
  }

  /** Returns how the work on a record follows the order. */
  placeOf(entry: SequenceEntry): Place {
    return {
      turn: (dropPayload) => {
        const turn = entry.turn(dropPayload);
        this.workOn();
        return turn;
      },
      succeeded: () => {
        this.#succeed(entry);
      },
      leave: () => this.#leave(entry),
      end: () => this.#end(entry),
      fail: () => {
        entry.fail();
        if (!entry.isOurs()) this.#remove([entry]);
        this.workOn();
      },
    };
  }

  /** Goes on with what is known now. What fails is rejected at the records that wait. */
  workOn(): void {
    this.#work().catch(() => undefined);
  }

  #succeed(entry: SequenceEntry): void {
    if (entry.position === null) return;
    this.#endedTo = Math.max(this.#endedTo, entry.position);
    entry.succeed();
    this.#steppedAtMs = this.#parts.monotonicMs();
    if (!this.#isStale) this.#decide();
  }

  async #leave(entry: SequenceEntry): Promise<void> {
    const { due, position } = entry;
    // One that goes its way without an order is in no sequence.
    if (position === null) return;
    entry.leave();
    due.position = position;
    if (this.#stored?.sequence.head.deliveryId === due.deliveryId) return;
    await this.#parts.store.setHead({ ...this.#place, head: headOf(entry) });
  }

  async #end(entry: SequenceEntry): Promise<void> {
    if (entry.position === null) return;
    if (entry.state !== 'ended') this.#readAgain();
    this.#remove([entry]);
    await this.#work();
    // The new owner may have stored followers behind it.
    if (!entry.isOurs()) await this.#parts.store.makeDue(this.id);
  }

  #remove(removed: readonly SequenceEntry[]): void {
    const gone = new Set(removed);
    this.#entries = this.#entries.filter((each) => !gone.has(each));
    for (const entry of removed) {
      this.#parts.followers.delete(entry);
      this.#parts.onLeft(entry);
    }
  }

  /** Resolves when everything that is known now is decided and stored. One works on a sequence at a time. */
  #work(): Promise<void> {
    this.#isDirty = true;
    this.#working ??= this.#workUntilClean();
    return this.#working;
  }

  async #workUntilClean(): Promise<void> {
    try {
      while (this.#isDirty) {
        this.#isDirty = false;
        await this.#step();
      }
    } catch (error) {
      for (const entry of this.#entries.filter(isWaiting)) {
        this.#parts.followers.delete(entry);
        entry.reject(error);
      }
      this.#readAgain();
      throw error;
    } finally {
      // In the same instant in which nothing was left to do: whoever comes next begins anew.
      this.#working = null;
      if (this.#entries.length === 0) this.#parts.onEmpty(this);
    }
  }

  async #step(): Promise<void> {
    this.#dropLost();
    this.#ordering = await this.#parts.orderingOf(this.#place.webhookId);
    if (this.#ordering === 'none' || this.#ordering === null) this.#passFresh();
    if (this.#isStale) await this.#read();
    // The partition may have gone meanwhile, and may come back.
    this.#dropLost();
    const toStore = this.#decide();
    if (toStore.length === 0) {
      await this.#refill();
      return;
    }
    // The retry service may have gone on since it was read.
    if (toStore.every(({ readsBefore }) => readsBefore < this.#reads)) {
      await this.#leaveMemory(toStore);
    }
    this.#readAgain();
  }

  /** The next owner reads them again. What has begun ends as the work of a former owner. */
  #dropLost(): void {
    const lost = this.#entries.filter(
      (entry) => !entry.isOurs() && (isWaiting(entry) || entry.state === 'failed'),
    );
    if (lost.length === 0) return;
    this.#remove(lost);
    const gone = new StoppedError('the partition has gone while its key was busy');
    for (const entry of lost) entry.reject(gone);
  }

  /** Later messages have no order any more; what is stored keeps its own. */
  #passFresh(): void {
    const passed = this.#entries.filter(
      (entry) => entry.due.position === undefined && isUndecided(entry),
    );
    this.#remove(passed);
    for (const entry of passed) entry.beginWithoutOrder();
  }

  /** Nothing is decided by what was read before a delivery has left memory. */
  async #read(): Promise<void> {
    while (this.#isStale) {
      const changes = this.#changes;
      this.#reads += 1;
      this.#stored = await this.#parts.store.read(this.id, () => ({
        endedTo: this.#endedTo,
        ordering: this.#ordering,
      }));
      this.#isStale = changes !== this.#changes;
    }
  }

  /** What is being read at this moment is out of date as well. */
  #readAgain(): void {
    this.#isStale = true;
    this.#changes += 1;
    this.#isDirty = true;
  }

  #view(): SequenceView<SequenceEntry> {
    return { entries: this.#entries, stored: this.#stored, endedTo: this.#endedTo };
  }

  /** Begins what may begin, and returns what is to leave memory, in its order. */
  #decide(): SequenceEntry[] {
    const { messageCreatedTopic, followers } = this.#parts;
    for (const { entry, position } of findPositions(this.#view(), messageCreatedTopic)) {
      entry.placeAt(position);
    }
    const toStore: SequenceEntry[] = [];
    const hasRoom = (entry: SequenceEntry, waitingOfKey: number): boolean =>
      followers.hasRoom(entry, waitingOfKey);
    for (const { entry, arrival } of decideArrivals(this.#view(), hasRoom)) {
      if (arrival === 'begin') this.#begin(entry);
      else if (arrival === 'follow') this.#follow(entry);
      else toStore.push(entry);
    }
    return toStore;
  }

  #begin(entry: SequenceEntry): void {
    const { followers, metrics, monotonicMs } = this.#parts;
    followers.delete(entry);
    entry.begin();
    if (this.#steppedAtMs !== null && entry.followsSinceMs !== Infinity) {
      metrics.onStep(monotonicMs() - this.#steppedAtMs);
    }
    this.#steppedAtMs = null;
  }

  #follow(entry: SequenceEntry): void {
    if (entry.state === 'following') return;
    const { followers, metrics, monotonicMs } = this.#parts;
    entry.follow(monotonicMs());
    followers.add(entry, this);
    metrics.onFollower('memory');
  }

  /** Stores followers, each with all before it. */
  async #leaveMemory(toStore: readonly SequenceEntry[]): Promise<void> {
    for (const entry of toStore) entry.store();
    const head = await this.#nameHead();
    const { store, metrics, nowMs } = this.#parts;
    const followers = toStore.map((entry) => {
      entry.due.position = positionIn(entry);
      return { ...this.#place, head, settled: settleWaiting(entry.due, 'order', nowMs()) };
    });
    await store.addFollowers(followers);
    this.#remove(toStore);
    for (const entry of toStore) {
      metrics.onFollower('stored');
      entry.endStored();
    }
  }

  /** Returns the head that the store names when followers are stored, and stores it when only memory has it. */
  async #nameHead(): Promise<SequenceHead> {
    const first = headInMemory(this.#view());
    if (first) {
      const head = headOf(first);
      await this.#parts.store.setHead({ ...this.#place, head });
      return head;
    }
    const stored = this.#stored?.sequence.head;
    if (!stored) throw new ImpossibleError(`a follower of ${this.id} waits for nothing`);
    return stored;
  }

  /** Publishes the next followers when everything in front of them has ended, or deletes a sequence without any. */
  async #refill(): Promise<void> {
    const refill = decideRefill(this.#view(), this.#released);
    switch (refill.kind) {
      case 'nothing':
        return;
      case 'read_again':
        this.#readAgain();
        return;
      case 'delete':
        await this.#delete();
        return;
      case 'publish':
        if (refill.followers.length > 0) await this.#publish(refill.followers);
        if (refill.isReadAgain) this.#readAgain();
    }
  }

  async #publish(followers: readonly Follower[]): Promise<void> {
    for (const { deliveryId } of followers) this.#released.add(deliveryId);
    await this.#parts.store.publish(followers);
    for (const follower of followers) follower.waiting = null;
  }

  async #delete(): Promise<void> {
    if (this.#stored && (await this.#parts.store.remove(this.#stored.sequence)))
      this.#stored = null;
    else this.#readAgain();
  }
}

function headOf(entry: SequenceEntry): SequenceHead {
  const { deliveryId, messageId, removeAtMs } = entry.due;
  const position = positionIn(entry);
  return { deliveryId, messageId, position, ...(removeAtMs !== undefined && { removeAtMs }) };
}

function positionIn({ due, position }: SequenceEntry): number {
  if (position === null) throw new ImpossibleError(`${due.deliveryId} has no position yet`);
  return position;
}
