import { createLoop, type SignallingLoop } from '../async/loop.ts';
import { withTimeout } from '../async/pause.ts';
import { createShares } from '../memory/memory-budgets.ts';
import { LEASE_MS } from '../mongo/leases.ts';
import type { Claimed, WorkNote, WorkNotes } from '../mongo/work-notes.ts';
import type { Logger } from '../service/logger.ts';

/** The facts that the work on a note gets from the process that it runs in. */
export interface WorkPlace {
  /** Aborted when this process stops, and when another one has the note. */
  signal: AbortSignal;
  /** Returns true when others wait for the slot of this note. */
  isWanted: () => boolean;
  /** To be called when the work has written a note that is due. */
  wake: () => void;
}

export interface ClaimedWorkDeps<Note extends WorkNote> {
  /** Names the work in the log. */
  name: string;
  notes: WorkNotes<Note>;
  /** Notes that this process works on at once, and those of one company among them. */
  slots: { ofAll: number; ofCompany: number };
  /**
   * Works on a note. Returns when the note is due again, in milliseconds since 1970, and null when the work has removed or
   * ended it. After an error it is due again in a second.
   */
  work: (note: Claimed<Note>, place: WorkPlace) => Promise<number | null>;
  /** Names the note in the log. */
  fieldsOf: (note: Note) => object;
  /** Names a claim. */
  newClaim: () => string;
  nowMs: () => number;
  /** Rejects when the signal is aborted. */
  sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  logger: Pick<Logger, 'warn'>;
}

export interface ClaimedWork {
  start: () => void;
  /** Looks at once for notes that are due: to be called when one was written. */
  wake: () => void;
  /** Claims notes that are due, until none is left or all slots are used. */
  tick: () => Promise<void>;
  /** Resolves when this process works on no note. */
  idle: () => Promise<void>;
  /** Aborts all work, and waits for its end for five seconds at most. */
  stop: () => Promise<void>;
}

const EVERY_MS = 1_000;
const RENEW_MS = LEASE_MS / 3;
const STOP_MS = 5_000;
/**
 * Notes that are claimed within this time begin together: with 60 webhooks of an app to release, the pages of the first ones
 * slowed the claims of the others down to ten a second.
 */
const TOGETHER_MS = 250;

/**
 * Does work whose pieces have a note each in MongoDB: claims the notes that are due, by company in turn, renews the claim
 * while the work runs, and puts the note back. A company may use half of the slots that are left free, so that the next one
 * always finds one. After a crash another process claims the note within LEASE_MS; after a stop at once
 * (docs/decisions/0014-long-work-leaves-a-note-first.md).
 */
export function createClaimedWork<Note extends WorkNote>(deps: ClaimedWorkDeps<Note>): ClaimedWork {
  const worker = new Worker(deps);
  const { loop } = worker;
  return {
    start: loop.start,
    wake() {
      worker.wake();
    },
    tick: loop.tick,
    idle: () => worker.idle(),
    async stop() {
      // Work that a store delays is left to others, which claim its note within LEASE_MS.
      const ended = loop.stop().then(() => worker.idle());
      await withTimeout(ended, STOP_MS).catch(() => undefined);
    },
  };
}

interface Running {
  companyId: string;
  stop: AbortController;
  /** Never rejects: a failure is logged. */
  done: Promise<void>;
}

class Worker<Note extends WorkNote> {
  readonly loop: SignallingLoop;
  readonly #deps: ClaimedWorkDeps<Note>;
  readonly #running = new Map<string, Running>();
  readonly #shares;
  /** How often it was woken. */
  #wakes = 0;

  constructor(deps: ClaimedWorkDeps<Note>) {
    const { name, logger, slots } = deps;
    this.#deps = deps;
    this.#shares = createShares(slots.ofAll);
    this.loop = createLoop({ name, everyMs: EVERY_MS, run: () => this.#claimAll(), logger });
  }

  wake(): void {
    if (this.loop.signal.aborted) return;
    // A tick that runs may have looked already.
    this.#wakes += 1;
    void this.loop.tick();
  }

  async idle(): Promise<void> {
    while (this.#running.size > 0) {
      await Promise.all([...this.#running.values()].map(({ done }) => done));
    }
  }

  async #claimAll(): Promise<void> {
    let together = Promise.withResolvers<undefined>();
    try {
      let sinceMs = this.#deps.nowMs();
      /**
       * Companies that have no slot here come before those that have some, until none of them has a note. They are looked for
       * again four times a second: beside 20 companies with more notes than slots this loop does not end, and a company
       * that came later waited behind all of their notes, for 35 to 72 s.
       */
      let areOthersDue = true;
      while (!this.loop.signal.aborted && this.#shares.used() < this.#deps.slots.ofAll) {
        const wakes = this.#wakes;
        const present = [...new Set([...this.#running.values()].map(({ companyId }) => companyId))];
        const full = present.filter((id) => !this.#hasRoom(id));
        const note = await this.#claimExcept(areOthersDue ? present : full);
        if (note) this.#start(note, together.promise);
        else if (areOthersDue && present.length > full.length) areOthersDue = false;
        else if (this.#wakes === wakes) return;
        else areOthersDue = true;
        if (this.#deps.nowMs() - sinceMs < TOGETHER_MS) continue;
        areOthersDue ||= note !== null;
        together.resolve(undefined);
        together = Promise.withResolvers();
        sinceMs = this.#deps.nowMs();
      }
    } finally {
      together.resolve(undefined);
    }
  }

  #claimExcept(exceptCompanyIds: readonly string[]): Promise<Claimed<Note> | null> {
    const { notes, newClaim } = this.#deps;
    const nowMs = this.#deps.nowMs();
    const untilMs = nowMs + LEASE_MS;
    return notes.claim({ claim: newClaim(), nowMs, untilMs, exceptCompanyIds });
  }

  #hasRoom(companyId: string): boolean {
    const { ofCompany } = this.#deps.slots;
    return this.#shares.heldBy(companyId) < ofCompany && this.#shares.hasRoom(companyId, 1);
  }

  /** Begins with the others that are claimed now. Work that runs here for the same note has lost its claim, and ends first. */
  #start(note: Claimed<Note>, together: Promise<unknown>): void {
    const { id, companyId } = note;
    const before = this.#running.get(id);
    before?.stop.abort(new Error('the note was claimed again'));
    const stop = new AbortController();
    const work = async (): Promise<void> => {
      // It may take longer than the claim lasts, which is renewed meanwhile.
      const isDueNow = await this.#workLogged(note, stop, Promise.all([before?.done, together]));
      const wasFull = !this.#hasRoom(companyId);
      this.#shares.remove(companyId, 1);
      if (this.#running.get(id) === running) this.#running.delete(id);
      // Somebody may wait for the slot, or this note is to go on.
      if (isDueNow || wasFull) this.wake();
    };
    const running: Running = { companyId, stop, done: Promise.resolve() };
    this.#running.set(id, running);
    this.#shares.add(companyId, 1);
    running.done = work();
  }

  /** Returns true when the note is due again at once. */
  async #workLogged(
    note: Claimed<Note>,
    stop: AbortController,
    before: Promise<unknown>,
  ): Promise<boolean> {
    const { notes, work, nowMs } = this.#deps;
    const signal = AbortSignal.any([this.loop.signal, stop.signal]);
    const ended = new AbortController();
    void this.#renew(note, stop, ended.signal);
    let dueAtMs: number | null;
    try {
      await before;
      signal.throwIfAborted();
      dueAtMs = await work(note, {
        signal,
        isWanted: () => !this.#hasRoom(note.companyId),
        wake: () => {
          this.wake();
        },
      });
    } catch (error) {
      if (!signal.aborted) this.#logFailure(note, error);
      dueAtMs = nowMs() + (this.loop.signal.aborted ? 0 : EVERY_MS);
    } finally {
      ended.abort();
    }
    if (dueAtMs === null) return false;
    const dueAgainAtMs = await notes.putBack(note, dueAtMs).catch(() => null);
    return dueAgainAtMs !== null && dueAgainAtMs <= nowMs();
  }

  #logFailure(note: Note, error: unknown): void {
    const { name: work, fieldsOf, logger } = this.#deps;
    const fields = { err: error, work, companyId: note.companyId, ...fieldsOf(note) };
    logger.warn(fields, 'work on a note failed, it is tried again');
  }

  /** Renews the claim until the work has ended. Ends the work when another process has the note. */
  async #renew(note: Claimed<Note>, stop: AbortController, ended: AbortSignal): Promise<void> {
    const { notes, nowMs, sleep } = this.#deps;
    let untilMs = nowMs() + LEASE_MS;
    for (;;) {
      await sleep(RENEW_MS, ended).catch(() => undefined);
      if (ended.aborted) return;
      const nextMs = nowMs() + LEASE_MS;
      // `null` for no reply: nobody else has the note while the claim lasts.
      const isOurs = await notes.renew(note, nextMs).catch(() => null);
      if (isOurs === true) untilMs = nextMs;
      else if (isOurs === false || nowMs() >= untilMs) {
        stop.abort(new Error('another process has the note, or may claim it'));
      }
    }
  }
}
