import type { NamedSource } from '@posthorn/domain/ingest.ts';
import type { RetryReason } from '@posthorn/domain/ingest-lag.ts';
import { isOutage, type KeepTrying, StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import { pause } from '@posthorn/platform/async/pause.ts';
import { GiveBackError, type IsOurs, type LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { IngestedMessage } from './read-record.ts';

/** What became of a record for now. */
export type RecordOutcome =
  /** Its message is stored. `isNew` is false when it was before, as after a crash between store and commit. */
  | { kind: 'accepted'; isNew: boolean }
  /** It can never be accepted as it is. */
  | { kind: 'refused'; error: unknown }
  /** It may be accepted later. */
  | { kind: 'waits'; why: RetryReason | null; error: unknown };

/** A record with its message, or why it can never be one. */
export type ReadRecord =
  | { kind: 'message'; record: LogRecord; message: IngestedMessage }
  | { kind: 'refused'; record: LogRecord; error: unknown };

export interface LaneDeps {
  /** Reads the record. Never throws. */
  read: (record: LogRecord, source: NamedSource) => ReadRecord;
  /** Resolves when it is the turn of the company to have this many bytes read, which are charged to it. */
  nextSlice: (companyId: string, bytes: number) => Promise<void>;
  /** Returns how many of `count` messages the company may send now, and after how many milliseconds one more. */
  takePermits: (companyId: string, count: number) => { granted: number; waitMs: number };
  /** Resolves when no claim of a key is left that was made for one of these records and has no message. */
  freeClaims: (companyId: string, messages: readonly IngestedMessage[]) => Promise<void>;
  /** Returns what became of each. The ids of their messages are in their order. */
  accept: (source: NamedSource, messages: readonly IngestedMessage[]) => Promise<RecordOutcome[]>;
  /** Resolves when Kafka has the records with their reasons. */
  reject: (source: NamedSource, refused: readonly Refused[]) => Promise<void>;
  /** Returns why the source must wait, such as a suspended company; null when it need not. */
  whyWaits: (source: NamedSource) => Promise<RetryReason | null>;
  /** False while another process may own the partition: nothing is begun then. */
  isSteady: () => boolean;
  keepTrying: KeepTrying;
  stopping: AbortSignal;
  /** Called when records have to wait, for the log. */
  onWait: (first: LogRecord, error: unknown) => void;
}

export interface Refused {
  record: LogRecord;
  error: unknown;
}

interface Waiting {
  record: LogRecord;
  isOurs: IsOurs;
  finish: () => void;
  fail: (error: unknown) => void;
}

/** A waiting record that was read. */
type Item = Waiting & { read: ReadRecord };

/** What a try has left. */
interface Tried {
  /** In their order. */
  left: Item[];
  why: RetryReason | null;
  /** How long they should wait at least, in milliseconds. */
  waitMs: number;
  /** True when a store may have claims of their keys. */
  mayBeClaimed: boolean;
  /** True when its company may send nothing until it is resumed. */
  isBarred?: boolean;
}

const isStillOurs = ({ isOurs }: Item): boolean => isOurs();

const NOTHING_LEFT: Tried = { left: [], why: null, waitMs: 0, mayBeClaimed: false };

/**
 * One batch of the group commit (decision 2). Larger ones gain nothing, and a batch of another partition waits behind
 * them.
 */
const MAX_RECORDS = 200;
const MAX_BYTES = 1_048_576;

/** What the API reads of a body in one turn. */
const TURN_BYTES = 65_536;

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 2_000;
/**
 * After so many tries in vain, about three seconds, a source gives its records back: they are a share of what the process holds
 * for all, and beside 50 suspended companies an active one had 20 of 2,000.
 */
const VAIN_TRIES = 5;
/** Between two checks of whether its company may send again. */
const GIVE_BACK_MS = 5_000;
/** Between two checks of whether the group has settled. */
const STEADY_CHECK_MS = 25;

/**
 * Accepts the records of one partition, one batch after the other: so the ids of their messages are in the order of the
 * records, also when a batch has to be repeated. A record is finished, and its offset may be committed, once its message
 * is stored by a majority, or Kafka has it among the rejected ones. Nothing is skipped.
 */
export class PartitionLane {
  readonly #source: NamedSource;
  readonly #deps: LaneDeps;
  #queue: Waiting[] = [];
  #isRunning = false;
  #isWaiting = false;
  #retried: RetryReason | null = null;
  #finished = 0;
  /** How many times in a row nothing was finished. */
  #vainTries = 0;
  /** Permits that were granted and not used, because the store was away. */
  #permits = 0;
  /** How many of the next records are accepted one by one. */
  #alone = 0;

  constructor(source: NamedSource, deps: LaneDeps) {
    this.#source = source;
    this.#deps = deps;
  }

  /**
   * Resolves when the record is finished, or its partition belongs to another member. Rejects with StoppedError, and with
   * GiveBackError when its company may send nothing for now.
   */
  add(record: LogRecord, isOurs: IsOurs): Promise<void> {
    return new Promise((finish, fail) => {
      this.#queue.push({ record, isOurs, finish, fail });
      if (!this.#isRunning) void this.#run();
    });
  }

  /** True while the records wait for something that is no fault of this process. */
  isWaiting(): boolean {
    return this.#isWaiting;
  }

  isIdle(): boolean {
    return !this.#isRunning;
  }

  /** Why some records could not be accepted the last time; also after they were given back, until one is finished. */
  retried(): RetryReason | null {
    return this.#retried;
  }

  /** How many records were finished since the lane was made. */
  finished(): number {
    return this.#finished;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    // Records that are handed over in the same iteration of the event loop are accepted together.
    await new Promise(setImmediate);
    while (this.#queue.length > 0) {
      const batch = this.#takeBatch();
      try {
        await this.#finish(batch);
      } catch (error) {
        const isGivenBack = error instanceof GiveBackError;
        for (const { fail } of batch) fail(error);
        if (isGivenBack) for (const { fail } of this.#queue.splice(0)) fail(error);
      }
      this.#isWaiting = false;
    }
    this.#isRunning = false;
  }

  #takeBatch(): Waiting[] {
    let bytes = 0;
    const end = this.#queue.findIndex(({ record }, index) => {
      bytes += record.value.length;
      return index === MAX_RECORDS || (index > 0 && bytes > MAX_BYTES);
    });
    return this.#queue.splice(0, end === -1 ? this.#queue.length : end);
  }

  /** Reads the records in turns with other companies: a whole batch blocked the process for 28 ms. */
  async #read(batch: readonly Waiting[]): Promise<Item[]> {
    const items: Item[] = [];
    let bytes = 0;
    for (const each of batch) {
      items.push({ ...each, read: this.#deps.read(each.record, this.#source) });
      bytes += each.record.value.length;
      if (bytes < TURN_BYTES) continue;
      await this.#deps.nextSlice(this.#source.companyId, bytes);
      bytes = 0;
    }
    return items;
  }

  /** Resolves when every record of the batch is finished, or the partition is gone. */
  async #finish(batch: readonly Waiting[]): Promise<void> {
    let left = await this.#read(batch);
    // A former owner may have claimed the keys of these, and so may an earlier try.
    let mayBeClaimed = left.some(({ record }) => record.isInherited);
    for (;;) {
      left = await this.#whenSteady(left);
      const tried = left.length > 0 ? await this.#try(left, mayBeClaimed) : NOTHING_LEFT;
      if (tried.left.length === 0) {
        this.#vainTries = 0;
        this.#retried = null;
        break;
      }
      this.#vainTries = tried.left.length < left.length ? 0 : this.#vainTries + 1;
      left = tried.left;
      mayBeClaimed ||= tried.mayBeClaimed;
      this.#isWaiting = true;
      this.#retried = tried.why;
      if (this.#vainTries > VAIN_TRIES && tried.isBarred) {
        throw new GiveBackError('the source waits', {
          pauseMs: GIVE_BACK_MS,
          mayReadOn: async () => (await this.#deps.whyWaits(this.#source)) === null,
        });
      }
      const waitMs = Math.max(tried.waitMs, FIRST_WAIT_MS * 2 ** this.#vainTries);
      await pause(Math.min(waitMs, LONGEST_WAIT_MS), this.#deps.stopping);
    }
  }

  /**
   * Waits until this process certainly owns the partition, and returns the records that it owns then. A partition that
   * went and came back is read again: the records from before are left to the later ones, which may be in the same batch.
   */
  async #whenSteady(given: Item[]): Promise<Item[]> {
    const { isSteady, stopping } = this.#deps;
    let left = given;
    for (;;) {
      if (stopping.aborted) throw new StoppedError('stopped before the records were accepted');
      const [ours, others] = [left.filter(isStillOurs), left.filter((each) => !isStillOurs(each))];
      for (const { finish } of others) finish();
      left = ours;
      if (left.length === 0 || isSteady()) return left;
      await pause(STEADY_CHECK_MS, stopping);
    }
  }

  /** Accepts what can be accepted now. */
  async #try(left: Item[], mayBeClaimed: boolean): Promise<Tried> {
    let begun: Item[] = [];
    try {
      const why = await this.#deps.whyWaits(this.#source);
      if (why !== null) {
        this.#reportWait(left, new Error(why));
        return { left, why, waitMs: 0, mayBeClaimed: false, isBarred: true };
      }
      const missing = Math.max(0, left.length - this.#permits);
      const { granted, waitMs } = this.#deps.takePermits(this.#source.companyId, missing);
      this.#permits += granted;
      begun = left.slice(0, this.#alone > 0 ? Math.min(1, this.#permits) : this.#permits);
      if (begun.length === 0) {
        // Permits come all the time, so it keeps its records.
        this.#reportWait(left, new Error('rate_limited'));
        return { left, why: 'rate_limited', waitMs, mayBeClaimed: false };
      }
      const { after, why: whyAfter } = await this.#accept(begun, mayBeClaimed);
      this.#permits -= begun.length - after.length;
      if (after.length === 0) this.#alone = Math.max(0, this.#alone - begun.length);
      const others = left.slice(begun.length);
      const reason = after.length > 0 ? whyAfter : others.length > 0 ? 'rate_limited' : null;
      return { left: [...after, ...others], why: reason, waitMs, mayBeClaimed: after.length > 0 };
    } catch (error) {
      if (isOutage(error)) {
        this.#reportWait(left, error);
        return { left, why: 'store_unavailable', waitMs: 0, mayBeClaimed: begun.length > 0 };
      }
      if (error instanceof StoppedError) throw error;
      return this.#passFault(left, begun, error);
    }
  }

  /**
   * A fault of the program would stop the partition for good. The record that causes it is rejected: to find it, those
   * that were accepted with it are accepted one by one. Throws the error when it is about none of them.
   */
  async #passFault(left: Item[], begun: readonly Item[], error: unknown): Promise<Tried> {
    const [first, second] = begun;
    if (!first) throw error;
    if (second) {
      this.#alone = begun.length;
      return { left, why: null, waitMs: 0, mayBeClaimed: true };
    }
    await this.#reject([{ record: first.record, error, item: first }]);
    this.#alone = Math.max(0, this.#alone - 1);
    this.#permits -= 1;
    return { left: left.slice(1), why: null, waitMs: 0, mayBeClaimed: true };
  }

  #reportWait([first]: readonly Item[], error: unknown): void {
    if (first) this.#deps.onWait(first.record, error);
  }

  #finishItem({ finish }: Waiting): void {
    this.#finished += 1;
    this.#retried = null;
    finish();
  }

  /** Finishes the records that are accepted or rejected. Returns the others, and why the first of them waits. */
  async #accept(
    items: readonly Item[],
    mayBeClaimed: boolean,
  ): Promise<{ after: Item[]; why: RetryReason | null }> {
    const { accept, freeClaims } = this.#deps;
    const messages = items.flatMap(({ read }) => (read.kind === 'message' ? [read.message] : []));
    if (mayBeClaimed && messages.length > 0) await freeClaims(this.#source.companyId, messages);
    // Since the last check MongoDB may have taken any time to answer, in which the partition may have gone.
    if (!this.#deps.isSteady() || !items.every(isStillOurs))
      return { after: [...items], why: null };
    const outcomes = messages.length > 0 ? await accept(this.#source, messages) : [];
    let next = 0;
    const refused: (Refused & { item: Item })[] = [];
    const after: Item[] = [];
    let why: RetryReason | null = null;
    for (const item of items) {
      const { read, record } = item;
      const outcome = read.kind === 'message' ? outcomes[next++] : read;
      if (outcome?.kind === 'accepted') {
        this.#isWaiting = false;
        this.#finishItem(item);
      } else if (outcome?.kind === 'refused') refused.push({ record, error: outcome.error, item });
      else {
        after.push(item);
        if (after.length > 1) continue;
        why = outcome?.why ?? null;
        this.#reportWait(after, outcome?.error);
      }
    }
    await this.#reject(refused);
    return { after, why };
  }

  async #reject(refused: readonly (Refused & { item: Item })[]): Promise<void> {
    if (refused.length === 0) return;
    await this.#deps.keepTrying('publish rejected records', () =>
      this.#deps.reject(this.#source, refused),
    );
    for (const { item } of refused) this.#finishItem(item);
  }
}
