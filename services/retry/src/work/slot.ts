import type { Resend } from '@posthorn/domain/resend.ts';
import type { ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import { setMaxListeners } from 'node:events';

export interface SlotDeps {
  resends: Pick<ResendStore, 'findOne'>;
  nowMs: () => number;
  /** Rejects when the signal is aborted. */
  sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/** How long a resend keeps its slot while others wait for one. */
const SLICE_MS = 3_000;
/** A client may ask to abort the resend. */
const LOOK_EVERY_MS = 5_000;
/** Waits are done in steps, between which the slot is looked at. */
const STEP_MS = 2_000;

/**
 * The slot of one resend in this process. Workers send its pages: one, or several for an app, whose parts
 * are sent at once. They wait in the slot. The resend yields the slot when each worker waits for an endpoint that has
 * been quiet for a while, or when its time slice is over and others wait for a slot.
 */
export class ResendSlot {
  readonly #deps: SlotDeps;
  readonly #resend: Resend;
  readonly #isWanted: () => boolean;
  readonly #yielding = new AbortController();
  readonly #sinceMs: number;
  #lookedAtMs: number;
  #busyWorkers = 0;
  #quietWorkers = 0;
  /** When a client asked to abort the resend, as far as known. */
  abortAskedAtMs: number | null;

  /** `isWanted`: others wait for a slot. */
  constructor(deps: SlotDeps, resend: Resend, isWanted: () => boolean) {
    [this.#deps, this.#resend, this.#isWanted] = [deps, resend, isWanted];
    this.abortAskedAtMs = resend.abortAskedAtMs;
    this.#sinceMs = this.#lookedAtMs = deps.nowMs();
    // Each worker listens to it.
    setMaxListeners(0, this.#yielding.signal);
  }

  get isYielding(): boolean {
    return this.#yielding.signal.aborted;
  }

  /** Adds a worker. Returns the function that ends it. */
  addWorker(): () => void {
    this.#busyWorkers += 1;
    return () => {
      this.#busyWorkers -= 1;
      this.#yieldIfQuiet();
    };
  }

  /** Yields when the slice is over, and reads every few seconds whether a client asked to abort the resend. */
  async look(): Promise<void> {
    const nowMs = this.#deps.nowMs();
    if (nowMs - this.#sinceMs > SLICE_MS && this.#isWanted()) this.#yielding.abort();
    // A clock that was set back must not stop the looks.
    if (Math.abs(nowMs - this.#lookedAtMs) < LOOK_EVERY_MS) return;
    this.#lookedAtMs = nowMs;
    const { companyId, id } = this.#resend;
    this.abortAskedAtMs = (await this.#deps.resends.findOne(companyId, id))?.abortAskedAtMs ?? null;
  }

  /**
   * Waits in a worker until this time, or until a client asks to abort the resend. Returns false when the resend yields
   * its slot before. Throws the reason of `signal` when that is aborted.
   */
  async wait(untilMs: number, isQuiet: boolean, signal: AbortSignal): Promise<boolean> {
    const wasAborted = this.abortAskedAtMs !== null;
    if (isQuiet) this.#setQuiet(1);
    try {
      for (;;) {
        signal.throwIfAborted();
        if (this.isYielding) return false;
        const leftMs = untilMs - this.#deps.nowMs();
        if (leftMs <= 0 || (!wasAborted && this.abortAskedAtMs !== null)) return true;
        await this.#sleep(Math.min(leftMs, STEP_MS), signal);
        await this.look();
      }
    } finally {
      if (isQuiet) this.#setQuiet(-1);
    }
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const both = AbortSignal.any([signal, this.#yielding.signal]);
    await this.#deps.sleep(ms, both).catch((error: unknown) => {
      if (!this.isYielding) throw error;
    });
  }

  #setQuiet(more: 1 | -1): void {
    this.#quietWorkers += more;
    this.#busyWorkers -= more;
    this.#yieldIfQuiet();
  }

  #yieldIfQuiet(): void {
    if (this.#busyWorkers === 0 && this.#quietWorkers > 0) this.#yielding.abort();
  }
}
