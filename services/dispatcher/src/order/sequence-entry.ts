import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import type { IsOurs, LogRecord } from '@posthorn/platform/kafka/record-log.ts';

/** A record with an ordering key that enters its sequence. */
export interface Entering {
  record: LogRecord;
  due: DueAttempt;
  isOurs: IsOurs;
}

/**
 * `arrived`: nothing is decided about it. `following`: it waits in memory. `storing`: it leaves memory, to wait as a
 * document. `begun`: it has its attempt. `ended`: its success is read, and may not be recorded yet. `failed`: its record
 * stays uncommitted until it is handled or its partition is read again, and nothing behind it begins before.
 */
export type EntryState = 'arrived' | 'following' | 'storing' | 'begun' | 'ended' | 'failed';

/** Whether it may still be decided about: it has arrived, or waits in memory. */
export function isUndecided({ state }: { state: EntryState }): boolean {
  return state === 'arrived' || state === 'following';
}

/** Whether it has no attempt yet. */
export function isWaiting(entry: { state: EntryState }): boolean {
  return isUndecided(entry) || entry.state === 'storing';
}

/** A record of a sequence in memory, and how far it is. */
export class SequenceEntry {
  readonly record: LogRecord;
  readonly due: DueAttempt;
  readonly isOurs: IsOurs;
  /** How many times the sequence had been read when it arrived. */
  readonly readsBefore: number;
  #state: EntryState = 'arrived';
  #position: number | null = null;
  #followsSinceMs = Infinity;
  #hasBegun = false;
  #isLeaving = false;
  #dropPayload: () => void = nothing;
  #turn = createTurn();

  constructor({ record, due, isOurs }: Entering, readsBefore: number) {
    this.record = record;
    this.due = due;
    this.isOurs = isOurs;
    this.readsBefore = readsBefore;
  }

  get state(): EntryState {
    return this.#state;
  }

  /** Null until the sequence was read, and for one that goes its way without an order. */
  get position(): number | null {
    return this.#position;
  }

  /** By the monotonic clock; Infinity before it follows. */
  get followsSinceMs(): number {
    return this.#followsSinceMs;
  }

  /**
   * Whether its attempt is made here, or waits: then a second record of the attempt is a copy. One that leaves memory may be
   * published already: from its document, or to the slow lane, whose record comes before the first one has ended here.
   */
  isAttemptHere(): boolean {
    return this.isOurs() && this.#state !== 'storing' && !this.#isLeaving;
  }

  /** Resolves to `begin` or `done` (sequence-in-memory.ts, Place). `dropPayload` frees the payload while it waits. */
  turn(dropPayload: () => void): Promise<'begin' | 'done'> {
    this.#dropPayload = dropPayload;
    return this.#turn.promise;
  }

  dropPayload(): void {
    this.#dropPayload();
  }

  placeAt(position: number): void {
    this.#position = position;
  }

  begin(): void {
    this.#state = 'begun';
    this.#hasBegun = true;
    this.#turn.resolve('begin');
  }

  beginWithoutOrder(): void {
    this.#position = null;
    this.#state = 'begun';
    this.#turn.resolve('begin');
  }

  follow(nowMs: number): void {
    this.#state = 'following';
    this.#followsSinceMs = nowMs;
  }

  store(): void {
    this.#state = 'storing';
  }

  /** Its delivery waits as a document. */
  endStored(): void {
    this.#turn.resolve('done');
  }

  /** Its delivery leaves memory, and has not ended. */
  leave(): void {
    this.#isLeaving = true;
  }

  succeed(): void {
    this.#state = 'ended';
  }

  /** The work on its record has failed. */
  fail(): void {
    if (this.#state === 'begun') this.#state = 'failed';
  }

  /** Ends its wait. */
  reject(error: unknown): void {
    this.#state = 'failed';
    this.#turn.reject(error);
  }

  /** A record that is handled again after a failure keeps its place. */
  handleAgain(): void {
    if (this.#state !== 'failed') return;
    this.#state = this.#hasBegun ? 'begun' : 'arrived';
    if (!this.#hasBegun) this.#turn = createTurn();
  }
}

function createTurn(): PromiseWithResolvers<'begin' | 'done'> {
  const turn = Promise.withResolvers<'begin' | 'done'>();
  // Whoever waits for it learns of a failure; nobody may.
  turn.promise.catch(nothing);
  return turn;
}

const nothing = (): void => undefined;
