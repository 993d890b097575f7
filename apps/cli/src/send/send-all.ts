import { setTimeout as sleep } from 'node:timers/promises';

/** Something to send, or why it cannot be sent. */
export type Outgoing<T> = { number: number; item: T } | { number: number; problem: string };

/** What became of one item of a batch. Items that failed together have the same error. */
export type Outcome<R> = { result: R } | { error: unknown };

/** What became of one item, or of several that failed together. A number is a line, or the place in the order. */
export type Sent<R> =
  { number: number; result: R } | { numbers: readonly number[]; error: unknown };

export interface SendAllOptions<T, R> {
  items: AsyncIterable<Outgoing<T>> | Iterable<Outgoing<T>>;
  /** Sends a batch. Resolves with what became of each item, in their order. */
  send: (items: readonly T[]) => Promise<Outcome<R>[]>;
  /** Waits until a sent item has ended, when the caller wants to know that. */
  finish: (result: R) => Promise<R>;
  bytesOf: (item: T) => number;
  /** Batches at once. With one, items are sent in their order. */
  concurrency: number;
  pacer: Pacer;
  signal: AbortSignal;
  /** Called in the order of the items. */
  onSent: (sent: Sent<R>) => void;
  /** Whether the failure of one means that all others would fail too. Nothing more is read then. */
  isFatal: (error: unknown) => boolean;
  /** Called at the first such failure. It must end the reading: an input that stays open has no next item. */
  stopReading: () => void;
}

/** What the API accepts in one request (docs/contract.md C22.1). The client divides a batch with more bytes. */
const MAX_ITEMS = 1_000;
const MAX_BYTES = 2 ** 20;
/** Results that are followed, or wait for an earlier one. It bounds the memory: each may have a payload of 256 KiB. */
const MAX_FINISHING = 128;

/** Why one item is not sent or not accepted. The code is that of the API. */
export class RefusedItem extends Error {
  override readonly name = 'RefusedItem';
  readonly code: string | undefined;

  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Sends items in batches as they come, at the rate of the pacer. A batch begins when none is under way, with what has
 * come since: a slow source has batches of one item at once, and a fast one full batches. An item is read when there is
 * room for it, so that a fast source waits. Returns the number of the last item that was sent, and the failure that ended
 * it.
 */
export async function sendAll<T, R>(
  options: SendAllOptions<T, R>,
): Promise<{ lastNumber: number; fatal: unknown }> {
  const { items, pacer, signal } = options;
  const batches = new Batches(options);
  try {
    for await (const outgoing of items) {
      await pacer.wait(signal);
      await batches.add(outgoing);
      if (batches.fatal !== null) break;
    }
  } catch (error) {
    // The end of the reading is a failure of its source.
    if (batches.fatal === null) throw error;
  } finally {
    await batches.end();
  }
  const { lastNumber, fatal } = batches;
  return { lastNumber, fatal };
}

class Batches<T, R> {
  /** Of the last item that was sent. */
  lastNumber = 0;
  fatal: unknown = null;
  readonly #options: SendAllOptions<T, R>;
  readonly #finishing = new Semaphore(MAX_FINISHING);
  /** The next batch, and whether the next item does not fit into it. */
  #waiting: Outgoing<T>[] = [];
  #bytes = 0;
  #isFull = false;
  #onTaken: (() => void) | null = null;
  #startsSoon = false;
  /** Batches that were begun and are not reported. */
  #underWay = 0;
  #followed = Promise.resolve();
  #reported = Promise.resolve();

  constructor(options: SendAllOptions<T, R>) {
    this.#options = options;
  }

  /** Resolves once the item is in the next batch. */
  async add(outgoing: Outgoing<T>): Promise<void> {
    const bytes = 'item' in outgoing ? this.#options.bytesOf(outgoing.item) : 0;
    const { length } = this.#waiting;
    this.#isFull = length === MAX_ITEMS || (length > 0 && this.#bytes + bytes > MAX_BYTES);
    if (this.#isFull) {
      const taken = new Promise<void>((resolve) => (this.#onTaken = resolve));
      this.#start();
      await taken;
    }
    this.#waiting.push(outgoing);
    this.#bytes += bytes;
    this.#startSoon();
  }

  /** Sends what is left, and resolves once everything is reported. */
  async end(): Promise<void> {
    while (this.#waiting.length > 0 || this.#underWay > 0) {
      this.#start();
      await this.#followed;
    }
    await this.#reported;
  }

  /** Lines that are read from the same buffer come before this, so that the first batch has them. */
  #startSoon(): void {
    if (this.#startsSoon) return;
    this.#startsSoon = true;
    setImmediate(() => {
      this.#startsSoon = false;
      this.#start();
    });
  }

  /** Begins the next batch when none is under way or, with a full one, fewer than allowed. */
  #start(): void {
    const allowed = this.#isFull ? this.#options.concurrency : 1;
    if (this.#waiting.length === 0 || (this.fatal === null && this.#underWay >= allowed)) return;
    const batch = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    this.#isFull = false;
    this.#onTaken?.();
    // All of it would fail too.
    if (this.fatal !== null) return;
    this.#underWay += 1;
    this.lastNumber = batch.at(-1)?.number ?? 0;
    const outcomes = this.#send(batch);
    this.#followed = this.#followed.then(async () => {
      await this.#follow(batch, await outcomes);
      this.#underWay -= 1;
      this.#start();
    });
  }

  async #send(batch: readonly Outgoing<T>[]): Promise<Outcome<R>[]> {
    const items = batch.flatMap((each) => ('item' in each ? [each.item] : []));
    const sent = items.length === 0 ? [] : await this.#options.send(items);
    for (const outcome of sent) if ('error' in outcome) this.#noteFailure(outcome.error);
    let next = 0;
    return batch.map((each) => {
      if ('problem' in each) return { error: new RefusedItem(each.problem) };
      return sent[next++] ?? { error: new RefusedItem('It has no result') };
    });
  }

  #noteFailure(error: unknown): void {
    if (this.fatal !== null || !this.#options.isFatal(error)) return;
    this.fatal = error;
    this.#options.stopReading();
  }

  /** Resolves once the last item of the batch is followed, so that those that are followed stay few. */
  async #follow(batch: readonly Outgoing<T>[], outcomes: readonly Outcome<R>[]): Promise<void> {
    for (const sent of groupsOf(batch, outcomes)) {
      await this.#finishing.acquire();
      const ended = 'error' in sent ? sent : this.#finish(sent.number, sent.result);
      this.#reported = this.#reported.then(async () => {
        this.#options.onSent(await ended);
        this.#finishing.release();
      });
    }
  }

  async #finish(number: number, result: R): Promise<Sent<R>> {
    try {
      return { number, result: await this.#options.finish(result) };
    } catch (error) {
      this.#noteFailure(error);
      return { numbers: [number], error };
    }
  }
}

/** Puts neighbours that failed together into one. */
function groupsOf<R>(
  batch: readonly { number: number }[],
  outcomes: readonly Outcome<R>[],
): Sent<R>[] {
  const groups: ({ number: number; result: R } | { numbers: number[]; error: unknown })[] = [];
  for (const [place, { number }] of batch.entries()) {
    const outcome = outcomes[place];
    const last = groups.at(-1);
    if (outcome === undefined) continue;
    if ('result' in outcome) groups.push({ number, result: outcome.result });
    else if (last && 'error' in last && last.error === outcome.error) last.numbers.push(number);
    else groups.push({ numbers: [number], error: outcome.error });
  }
  return groups;
}

class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(size: number) {
    this.#free = size;
  }

  async acquire(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }
}

/** A start that is late by up to so much is caught up on. Beyond it, a source that paused would be sent as a burst. */
const MAX_LATE_MS = 100;

/** Spaces sends evenly. The times are those of a clock, so that the lateness of timers does not add up. */
export class Pacer {
  readonly #intervalMs: number;
  #dueMs = -Infinity;

  /** Without a rate, nothing waits. */
  constructor(perSecond: number | undefined) {
    this.#intervalMs = perSecond === undefined ? 0 : 1_000 / perSecond;
  }

  /** Reserves the next start, and returns how long it is until then. */
  reserve(nowMs: number): number {
    const dueMs = Math.max(this.#dueMs, nowMs - (this.#dueMs === -Infinity ? 0 : MAX_LATE_MS));
    this.#dueMs = dueMs + this.#intervalMs;
    return Math.max(0, dueMs - nowMs);
  }

  async wait(signal: AbortSignal): Promise<void> {
    if (this.#intervalMs === 0) return;
    const delayMs = this.reserve(performance.now());
    // Timers cannot wait for less.
    if (delayMs >= 1) await sleep(delayMs, undefined, { signal });
  }
}
