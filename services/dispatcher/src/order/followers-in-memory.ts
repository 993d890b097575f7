import type { SequenceEntry } from './sequence-entry.ts';

export interface FollowersDeps {
  /** False while followers are to leave memory. */
  hasMemory: () => boolean;
  /** Calls `run` once, after this time. */
  later: (ms: number, run: () => void) => void;
  monotonicMs: () => number;
}

/** Stores its followers that have no room any more. */
interface Sequence {
  workOn: () => void;
}

type FollowerInMemory = Pick<SequenceEntry, 'state' | 'followsSinceMs' | 'dropPayload' | 'isOurs'>;

/** Followers of one key that wait in memory. */
const MAX_OF_KEY = 16;
/** A quarter of the records in flight: a company with many busy keys does not stop the reading of others. */
const MAX_FOLLOWERS = 12_500;
/** Longer than nearly all requests. A head that takes longer costs each follower two writes. */
const IN_MEMORY_MS = 5_000;
const KEEP_PAYLOAD_MS = 1_000;
const TICK_MS = 500;

/** The records of all sequences that wait in memory, within bounds of number, bytes and time. */
export class FollowersInMemory {
  readonly #deps: FollowersDeps;
  /** Each with its sequence, the first one first. */
  readonly #followers = new Map<FollowerInMemory, Sequence>();
  #isTicking = false;

  constructor(deps: FollowersDeps) {
    this.#deps = deps;
  }

  add(follower: FollowerInMemory, sequence: Sequence): void {
    this.#followers.set(follower, sequence);
    this.#tickLater();
  }

  delete(follower: FollowerInMemory): void {
    this.#followers.delete(follower);
  }

  /** Whether a record may begin to wait, or wait on, when so many of its key have no attempt. */
  hasRoom({ state, followsSinceMs }: FollowerInMemory, waitingOfKey: number): boolean {
    const { hasMemory, monotonicMs } = this.#deps;
    if (state === 'following') return monotonicMs() - followsSinceMs < IN_MEMORY_MS;
    return waitingOfKey <= MAX_OF_KEY && this.#followers.size < MAX_FOLLOWERS && hasMemory();
  }

  #tickLater(): void {
    if (this.#isTicking) return;
    this.#isTicking = true;
    this.#deps.later(TICK_MS, () => {
      this.#isTicking = false;
      this.#tick();
    });
  }

  /** Frees the payloads of those that wait for a second, and works on the sequences of those that wait for too long. */
  #tick(): void {
    const nowMs = this.#deps.monotonicMs();
    const due = new Set<Sequence>();
    for (const [follower, sequence] of this.#followers) {
      const waitedMs = nowMs - follower.followsSinceMs;
      if (waitedMs >= KEEP_PAYLOAD_MS) follower.dropPayload();
      if (waitedMs >= IN_MEMORY_MS || !follower.isOurs()) due.add(sequence);
    }
    for (const sequence of due) sequence.workOn();
    if (this.#followers.size > 0) this.#tickLater();
  }
}
