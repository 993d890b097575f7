import { fateOfWaiting } from '@posthorn/domain/delivery/when-cancelled.ts';
import { holdSourceOf, isHolding } from '@posthorn/domain/waiting.ts';
import { createLoop, type SignallingLoop } from '@posthorn/platform/async/loop.ts';
import { createShares, type Shares } from '@posthorn/platform/memory/memory-budgets.ts';
import { LEASE_MS } from '@posthorn/platform/mongo/leases.ts';
import type {
  WaitingOwner,
  WaitingDeliveries,
} from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type {
  HoldNote,
  HoldNotes,
  HoldPlace,
  HoldStates,
} from '@posthorn/platform/mongo/webhooks/holds.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { Counter, type Registry } from 'prom-client';
import { type Released, releaseWebhook, type ReleaseDeps } from './release-webhook.ts';

export interface RunReleasesDeps extends Omit<ReleaseDeps, 'waiting' | 'holds'> {
  notes: Pick<HoldNotes, 'expand' | 'claim' | 'take' | 'putBack' | 'remove'>;
  waiting: ReleaseDeps['waiting'] & Pick<WaitingDeliveries, 'webhooks'>;
  holds: HoldStates;
  /** Announces that the hold of a webhook or an app has ended by itself. */
  invalidate: Invalidate;
  /** Names a claim. */
  newClaim: () => string;
  logger: Logger;
}

export interface ReleaseRunner {
  start: () => void;
  /** Looks now at the note of what is on hold, or was, unless too many run here. Resolves when the look has begun. */
  wake: (place: Pick<HoldPlace, 'id' | 'companyId'>) => Promise<void>;
  /** Claims notes that are due, until none is left or all slots are used. */
  tick: () => Promise<void>;
  /** Resolves when this process works on no note. */
  idle: () => Promise<void>;
  stop: () => Promise<void>;
}

/**
 * Notes that this process works on at once, and as many again that clients have just touched here. A company may use what is left
 * free of each: half when it is alone.
 */
const SLOTS = 200;
const WEBHOOKS_PAGE = 1_000;
const EVERY_MS = 1_000;
const RENEW_MS = LEASE_MS / 3;
/** A dispatcher knows of the end of a hold within two seconds, and records what it got before within some more. */
const LINGER_MS = 60_000;
/** Between two looks at a hold that lives: half of the time since it was touched, within these bounds. */
const LOOK_MS = { min: 1_000, max: 1_800_000 };
/** The same after a release that found an endpoint which fails. */
const QUIET_MS = { min: 5_000, max: 300_000 };

/**
 * Looks at the notes of holds when they are due, and releases what waits once the hold has ended. A note stays until a
 * minute after that, because a dispatcher may still make deliveries wait; what comes even later is found by the sweep of
 * the retry service. When this process stops, another one continues.
 */
export function createReleaseRunner(deps: RunReleasesDeps): ReleaseRunner {
  const runner = new Runner(deps);
  const { loop } = runner;
  return {
    start: loop.start,
    wake: (place) => runner.wake(place),
    tick: loop.tick,
    idle: () => runner.idle(),
    async stop() {
      await loop.stop();
      await runner.idle();
    },
  };
}

export function createReleaseCounter(registry: Registry): ReleaseDeps['count'] {
  const released = new Counter({
    name: 'posthorn_waiting_released_total',
    help: 'Waiting deliveries whose attempts this process published after the end of a hold or a suspension.',
    registers: [registry],
  });
  return (deliveries) => {
    released.inc(deliveries);
  };
}

interface Running {
  companyId: string;
  stop: AbortController;
  /** Never rejects: a failure is logged. */
  done: Promise<void>;
}

class Runner {
  readonly loop: SignallingLoop;
  readonly #deps: RunReleasesDeps;
  readonly #running = new Map<string, Running>();
  readonly #slots = createShares(SLOTS);
  /** Apart from them: a client that touches many webhooks again and again takes no slot from others. */
  readonly #woken = createShares(SLOTS);

  constructor(deps: RunReleasesDeps) {
    this.#deps = deps;
    this.loop = createLoop({
      name: 'releases of waiting deliveries',
      everyMs: EVERY_MS,
      run: () => this.#claimAll(),
      logger: deps.logger,
    });
  }

  async wake({ id, companyId }: Pick<HoldPlace, 'id' | 'companyId'>): Promise<void> {
    if (!this.#woken.hasRoom(companyId, 1)) return;
    const note = await this.#deps.notes.take(id, this.#newClaim());
    if (note) this.#start(note, this.#woken);
  }

  async idle(): Promise<void> {
    while (this.#running.size > 0) {
      await Promise.all([...this.#running.values()].map(({ done }) => done));
    }
  }

  async #claimAll(): Promise<void> {
    while (!this.loop.signal.aborted && this.#slots.used() < SLOTS) {
      const companies = [...new Set([...this.#running.values()].map((each) => each.companyId))];
      const exceptCompanyIds = companies.filter((id) => !this.#slots.hasRoom(id, 1));
      const note = await this.#deps.notes.claim({ ...this.#newClaim(), exceptCompanyIds });
      if (!note) return;
      this.#start(note, this.#slots);
    }
  }

  #newClaim() {
    const { newClaim, nowMs } = this.#deps;
    return { claim: newClaim(), nowMs: nowMs(), untilMs: nowMs() + LEASE_MS };
  }

  /** The look that runs for the same thing has lost its claim, and ends first. */
  #start(note: HoldNote, shares: Shares): void {
    const before = this.#running.get(note.id);
    before?.stop.abort(new Error('the hold was touched'));
    const stop = new AbortController();
    const work = async (): Promise<void> => {
      await before?.done;
      const isDueNow = !stop.signal.aborted && (await this.#workLogged(note, stop));
      const wasFull = !this.#slots.hasRoom(note.companyId, 1);
      shares.remove(note.companyId, 1);
      if (this.#running.get(note.id) === running) this.#running.delete(note.id);
      if ((isDueNow || wasFull) && !this.loop.signal.aborted) void this.loop.tick();
    };
    const running: Running = { companyId: note.companyId, stop, done: Promise.resolve() };
    this.#running.set(note.id, running);
    shares.add(note.companyId, 1);
    running.done = work();
  }

  /** Returns true when it is due again at once. */
  async #workLogged(note: HoldNote, stop: AbortController): Promise<boolean> {
    const { notes, nowMs, logger } = this.#deps;
    const { id: holdOf, companyId } = note;
    const signal = AbortSignal.any([this.loop.signal, stop.signal]);
    const ended = new AbortController();
    void this.#renew(note, stop, ended.signal);
    try {
      return await this.#work(note, signal);
    } catch (error) {
      if (!signal.aborted) {
        const text = 'releasing waiting deliveries failed, it is tried again';
        logger.warn({ err: error, holdOf, companyId }, text);
      }
      const dueAtMs = nowMs() + (this.loop.signal.aborted ? 0 : EVERY_MS);
      await notes.putBack(note, dueAtMs).catch(() => false);
      return false;
    } finally {
      ended.abort();
    }
  }

  /** Renews the claim until the work has ended. Ends the work when another process has the note. */
  async #renew(note: HoldNote, stop: AbortController, ended: AbortSignal): Promise<void> {
    const { notes, nowMs, sleep } = this.#deps;
    for (;;) {
      await sleep(RENEW_MS, ended).catch(() => undefined);
      if (ended.aborted) return;
      const renewed = notes.putBack(note, nowMs() + LEASE_MS, { keepsClaim: true });
      const isOurs = await renewed.catch(() => true);
      if (!isOurs) stop.abort(new Error('another process has the note'));
    }
  }

  async #work(note: HoldNote, signal: AbortSignal): Promise<boolean> {
    const { notes, nowMs } = this.#deps;
    const { endsAtMs, endedAtMs } = await this.#holdOf(note);
    if (endsAtMs !== null) {
      const againMs = within(LOOK_MS, (nowMs() - note.touchedAtMs) / 2);
      const isOpenEnded = note.kind !== 'company' && endsAtMs === Infinity;
      const dueAtMs = Math.min(endsAtMs, nowMs() + againMs);
      await notes.putBack(note, dueAtMs, { ...(isOpenEnded && { isOpenEnded }) });
      return false;
    }
    const outcome = await this.#release({ ...note, touchedAtMs: endedAtMs }, signal);
    const agoMs = nowMs() - endedAtMs;
    // Another hold has a note of its own, which gives this webhook one again, but not with its rate.
    const isHeld = outcome === 'on_hold';
    const isOver = outcome === 'nothing' || (isHeld && note.ratePerSecond === null);
    if (isOver && agoMs >= LINGER_MS) await notes.remove(note);
    else await notes.putBack(note, nowMs() + againAfterMs(outcome, agoMs));
    return outcome === 'yielded' || outcome === 'expanded';
  }

  async #release(note: HoldNote, signal: AbortSignal): Promise<Released | 'expanded'> {
    const { id: webhookId, companyId, kind, ratePerSecond } = note;
    if (kind !== 'webhook') return (await this.#expand(note, signal)) > 0 ? 'expanded' : 'nothing';
    const isWanted = (): boolean => !this.#slots.hasRoom(companyId, 1);
    const webhook = { companyId, webhookId };
    return releaseWebhook(this.#deps, { webhook, ratePerSecond, isWanted, signal });
  }

  /**
   * When the hold ends, at the latest; null when it has ended, and then the time of that. One that has ended by itself is
   * removed.
   */
  async #holdOf(note: HoldNote): Promise<{ endsAtMs: number | null; endedAtMs: number }> {
    const { notes, holds, nowMs, invalidate } = this.#deps;
    if (note.kind === 'company') {
      const isSuspended = await holds.isSuspended(note.companyId);
      return { endsAtMs: isSuspended ? Infinity : null, endedAtMs: note.touchedAtMs };
    }
    const held = await holds.holdOf(note);
    if (isHolding(held, nowMs())) {
      return { endsAtMs: held?.untilMs ?? Infinity, endedAtMs: note.touchedAtMs };
    }
    const endedAtMs = held ? nowMs() : note.touchedAtMs;
    // Stored before the hold is removed: the looks that follow find none, and go on for a minute from this time.
    const ended = { keepsClaim: true, touchedAtMs: endedAtMs };
    if (held) await notes.putBack(note, endedAtMs + LEASE_MS, ended);
    if (await holds.clearEnded(note, nowMs())) {
      const { companyId, id } = note;
      await invalidate({ companyId, id }, { companyId, id: holdSourceOf(id) });
    }
    return { endsAtMs: null, endedAtMs };
  }

  /** Gives each webhook that may be released now a note of its own. Returns how many got one. */
  async #expand(note: HoldNote, signal: AbortSignal): Promise<number> {
    const { notes, holds, nowMs } = this.#deps;
    let expanded = 0;
    for await (const some of inPages(this.#webhooksOf(note), WEBHOOKS_PAGE)) {
      signal.throwIfAborted();
      const holders = await holds.holdersOf(some);
      const free = some.filter(({ webhookId }) => {
        const known = holders.get(webhookId) ?? {
          webhook: null,
          appHeld: null,
          isSuspended: false,
        };
        // Another hold lives, whose note expands in its turn.
        return fateOfWaiting(known, nowMs()).kind !== 'wait';
      });
      const ids = [...new Set(free.map(({ webhookId }) => webhookId))];
      if (ids.length > 0) expanded += await notes.expand(note, ids, nowMs());
    }
    return expanded;
  }

  /** Those of an app or a company that have waiting deliveries; one may come several times. */
  async *#webhooksOf({ id, companyId, kind }: HoldNote): AsyncGenerator<WaitingOwner> {
    const { waiting, holds } = this.#deps;
    if (kind === 'company') {
      yield* waiting.webhooks(companyId);
      return;
    }
    for (let afterId: string | undefined = ''; afterId !== undefined;) {
      const page: string[] = await holds.webhooksOfApp({ id, companyId }, afterId, WEBHOOKS_PAGE);
      if (page.length > 0) yield* waiting.webhooks(companyId, page);
      afterId = page.at(-1);
    }
  }
}

async function* inPages<Item>(items: AsyncIterable<Item>, size: number): AsyncGenerator<Item[]> {
  let page: Item[] = [];
  for await (const item of items) {
    page.push(item);
    if (page.length < size) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

/** After the end of the hold, `agoMs` ago. */
function againAfterMs(outcome: Released | 'expanded', agoMs: number): number {
  switch (outcome) {
    case 'yielded':
      return 0;
    case 'quiet':
      return within(QUIET_MS, agoMs / 4);
    case 'on_hold':
      return within(LOOK_MS, agoMs / 2);
    case 'expanded':
    case 'done':
    case 'nothing':
      return within({ min: LOOK_MS.min, max: LINGER_MS / 4 }, agoMs / 2);
  }
}

function within({ min, max }: { min: number; max: number }, ms: number): number {
  return Math.min(max, Math.max(min, ms));
}
