import type { Resend } from '@posthorn/domain/resend.ts';
import { LEASE_MS, type LeaseStore } from '@posthorn/platform/mongo/leases.ts';
import { ResendMovedError, type ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import { setMaxListeners } from 'node:events';

export interface SlotDeps {
  /** Names this process as the holder of leases. */
  holder: string;
  leases: LeaseStore;
  resends: Pick<ResendStore, 'putBack'>;
  nowMs: () => number;
  /** Rejects when the signal is aborted. */
  sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/** How long a resend keeps its slot while others wait for one. */
const SLICE_MS = 3_000;
const RENEW_MS = LEASE_MS / 3;
/** Waits are done in steps, between which the lease is renewed. */
const STEP_MS = 2_000;

/**
 * The slot of one resend in this process, and its lease. Workers send its pages: one, or several for an app, whose parts
 * are sent at once. They wait in the slot. The resend yields the slot when each worker waits for an endpoint that has
 * been quiet for a while, or when its time slice is over and others wait for a slot.
 */
export class ResendSlot {
  readonly #deps: SlotDeps;
  readonly #resend: Resend;
  readonly #isWanted: () => boolean;
  readonly #yielding = new AbortController();
  readonly #sinceMs: number;
  #renewedAtMs: number;
  #busyWorkers = 0;
  #quietWorkers = 0;
  /** When a client asked to abort the resend, as it was read with the last renewal. */
  abortAskedAtMs: number | null;

  /** The lease is held. `isWanted`: others wait for a slot. */
  constructor(deps: SlotDeps, resend: Resend, isWanted: () => boolean) {
    [this.#deps, this.#resend, this.#isWanted] = [deps, resend, isWanted];
    this.abortAskedAtMs = resend.abortAskedAtMs;
    this.#sinceMs = this.#renewedAtMs = deps.nowMs();
    // Each worker listens to it.
    setMaxListeners(0, this.#yielding.signal);
  }

  static leaseOf({ id }: Resend): string {
    return `resend/${id}`;
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

  /** Renews the lease in time, and yields when the slice is over. Throws ResendMovedError when the lease is lost. */
  async renew(): Promise<void> {
    const nowMs = this.#deps.nowMs();
    if (nowMs - this.#sinceMs > SLICE_MS && this.#isWanted()) this.#yielding.abort();
    // A clock that was set back must not stop the renewals.
    if (Math.abs(nowMs - this.#renewedAtMs) < RENEW_MS) return;
    this.#renewedAtMs = nowMs;
    const { leases, holder, resends } = this.#deps;
    const lease = ResendSlot.leaseOf(this.#resend);
    if (!(await leases.hold(lease, holder))) throw new ResendMovedError(lease);
    const stored = await resends.putBack(this.#resend, nowMs + LEASE_MS);
    if (!stored) throw new ResendMovedError(lease);
    this.abortAskedAtMs = stored.abortAskedAtMs;
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
        await this.renew();
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
