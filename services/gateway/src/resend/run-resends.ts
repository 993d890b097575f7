import { isOfOne, type Resend } from '@posthorn/domain/resend.ts';
import { createLoop, type SignallingLoop } from '@posthorn/platform/async/loop.ts';
import { LEASE_MS } from '@posthorn/platform/mongo/leases.ts';
import { ResendMovedError, type ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { sendReplay, type SendReplayDeps } from './send-replay.ts';
import { sendResend, type SendResendDeps, type Waiting } from './send-resend.ts';
import { ResendSlot, type SlotDeps } from './slot.ts';

export interface RunResendsDeps extends SendResendDeps, SendReplayDeps, SlotDeps {
  resends: SendResendDeps['resends'] &
    SendReplayDeps['resends'] &
    Pick<ResendStore, 'claim' | 'putBack'>;
  logger: Logger;
}

export interface ResendRunner {
  start: () => void;
  /** Starts this resend now, unless too many run here: then it is claimed when its time comes. */
  wake: (resend: Resend) => void;
  /** Claims and starts resends that are due, until none is left or all slots are used. */
  tick: () => Promise<void>;
  /** Resolves when this process works on no resend. */
  idle: () => Promise<void>;
  stop: () => Promise<void>;
}

/** Slots of this process. The share of a company leaves room for the others. */
const SLOTS = { ofAll: 50, ofCompany: 5 };
/** Resends of one delivery that a client has just asked for. They are quick, and start beside the slots. */
const WOKEN_SINGLES = { ofAll: 200, ofCompany: 20 };
const EVERY_MS = 1_000;

/**
 * Sends resends. One that waits for its endpoint holds no slot: it is put back with the time when it is due, and then
 * claimed by any process with one statement. When this process stops, another one continues.
 */
export function createResendRunner(deps: RunResendsDeps): ResendRunner {
  const runner = new Runner(deps);
  const { loop } = runner;
  return {
    start: loop.start,
    wake(resend) {
      runner.wake(resend);
    },
    tick: loop.tick,
    idle: () => runner.idle(),
    async stop() {
      await loop.stop();
      await runner.idle();
    },
  };
}

interface Running {
  companyId: string;
  kind: 'slot' | 'woken_single';
  /** Never rejects: a failure is logged. */
  done: Promise<void>;
}

class Runner {
  readonly loop: SignallingLoop;
  readonly #deps: RunResendsDeps;
  readonly #running = new Map<string, Running>();

  constructor(deps: RunResendsDeps) {
    this.#deps = deps;
    this.loop = createLoop({
      name: 'resends',
      everyMs: EVERY_MS,
      run: () => this.#claimAll(),
      logger: deps.logger,
    });
  }

  wake(resend: Resend): void {
    const kind = isOfOne(resend) ? 'woken_single' : 'slot';
    if (this.#hasRoom(kind, resend.companyId)) this.#start(resend, kind);
  }

  async idle(): Promise<void> {
    while (this.#running.size > 0) {
      await Promise.all([...this.#running.values()].map(({ done }) => done));
    }
  }

  async #claimAll(): Promise<void> {
    while (!this.loop.signal.aborted && this.#companiesInSlots().length < SLOTS.ofAll) {
      const claimed = await this.#claim();
      if (!claimed) return;
      // It is due although it is worked on here: this process may hang, as without Kafka, so another one has to get it.
      if (this.#running.has(claimed.id)) {
        await this.#deps.resends.putBack(claimed, this.#deps.nowMs() + EVERY_MS);
      } else this.#start(claimed, 'slot');
    }
  }

  /** A company that has no slot here comes before one that has some. */
  async #claim(): Promise<Resend | null> {
    const inSlots = this.#companiesInSlots();
    const present = [...new Set(inSlots)];
    const full = present.filter((id) => !this.#hasRoom('slot', id));
    const first = await this.#claimExcept(present);
    if (first || full.length === present.length) return first;
    return this.#claimExcept(full);
  }

  #claimExcept(exceptCompanyIds: readonly string[]): Promise<Resend | null> {
    const nowMs = this.#deps.nowMs();
    return this.#deps.resends.claim({ nowMs, untilMs: nowMs + LEASE_MS, exceptCompanyIds });
  }

  /** The company of each slot that is used. */
  #companiesInSlots(): string[] {
    const inSlots = [...this.#running.values()].filter(({ kind }) => kind === 'slot');
    return inSlots.map(({ companyId }) => companyId);
  }

  #hasRoom(kind: Running['kind'], companyId: string): boolean {
    const limits = kind === 'slot' ? SLOTS : WOKEN_SINGLES;
    const alike = [...this.#running.values()].filter((each) => each.kind === kind);
    const own = alike.filter((each) => each.companyId === companyId);
    return alike.length < limits.ofAll && own.length < limits.ofCompany;
  }

  /** The map keeps a claim and a wake of this process from starting the same resend. */
  #start(resend: Resend, kind: Running['kind']): void {
    const { id, companyId } = resend;
    if (this.#running.has(id)) return;
    const work = async (): Promise<void> => {
      const dueAtMs = await this.#workLogged(resend);
      const wasFull = !this.#hasRoom('slot', companyId);
      this.#running.delete(id);
      // Somebody may wait for the slot, or this resend is to go on.
      const isNext = wasFull || (dueAtMs !== null && dueAtMs <= this.#deps.nowMs());
      if (isNext && !this.loop.signal.aborted) void this.loop.tick();
    };
    this.#running.set(id, { companyId, kind, done: work() });
  }

  /** Returns when it is due again; null at its end, and when this process does not know. */
  async #workLogged(resend: Resend): Promise<number | null> {
    try {
      return await this.#work(resend);
    } catch (error) {
      if (this.loop.signal.aborted || error instanceof ResendMovedError) return null;
      const { id: resendId, companyId, webhookId, appId } = resend;
      this.#deps.logger.warn(
        { err: error, resendId, companyId, webhookId, appId },
        'resend failed, it is tried again',
      );
      return null;
    }
  }

  /** The lease keeps other processes out: those that were woken, and those of versions that claim nothing. */
  async #work(resend: Resend): Promise<number | null> {
    const { leases, holder, nowMs } = this.#deps;
    const lease = ResendSlot.leaseOf(resend);
    if (!(await leases.hold(lease, holder))) return null;
    // After a failure, or the stop of this process, it is continued from what is stored.
    let left: Waiting | null = { resend, dueAtMs: nowMs() };
    try {
      const slot = new ResendSlot(
        this.#deps,
        resend,
        () => !this.#hasRoom('slot', resend.companyId),
      );
      const send = resend.kind === 'replay' ? sendReplay : sendResend;
      left = await send(this.#deps, slot, resend, this.loop.signal);
    } catch (error) {
      if (error instanceof ResendMovedError) left = null;
      else if (!this.loop.signal.aborted) left = { resend, dueAtMs: nowMs() + EVERY_MS };
      throw error;
    } finally {
      // The lease goes first: whoever claims the resend then must get it.
      await leases.release(lease, holder);
      if (left) await this.#deps.resends.putBack(left.resend, left.dueAtMs);
    }
    return left?.dueAtMs ?? null;
  }
}
