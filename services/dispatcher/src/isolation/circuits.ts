import type { Trigger } from '@posthorn/domain/delivery/delivery.ts';
import { startTicker, type Ticker } from '@posthorn/platform/async/loop.ts';
import type {
  CircuitOwner,
  CircuitTimes,
  InheritedCircuit,
  OpenCircuits,
} from '@posthorn/platform/redis/open-circuits.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { ReportIncident } from '@posthorn/platform/records/operator-incidents.ts';
import { EventEmitter } from 'node:events';
import {
  blockOf,
  type Circuit,
  type CircuitReport,
  type CircuitState,
  circuitViewOf,
  countsAsFailure,
  createCircuit,
  OPENS_WHEN,
  seededSuccesses,
} from './circuit.ts';
import type { CircuitView } from './gate.ts';
import { MAX_INHERITED, PartitionsTakenOver, TAKEN_OVER_WITHIN_MS } from './handover.ts';

/** Where an attempt goes. A changed URL is another endpoint, and starts with a closed circuit. */
interface CircuitEndpoint {
  webhookId: string;
  companyId: string;
  url: string;
}

interface CircuitCandidate extends CircuitEndpoint {
  trigger: Trigger;
  /** Since when open circuits have deferred the attempt, in milliseconds since 1970; null when none has. */
  deferredSinceMs: number | null;
}

/** To be called once, with the report of the attempt; null when it was not made after all. */
export type ReportToCircuit = (report: CircuitReport | null) => Promise<void>;

interface CircuitsDeps {
  shared: Pick<OpenCircuits, 'takeOver' | 'opened' | 'closed'>;
  /** Returns the partition of the webhook's records. */
  partitionOf: (webhookId: string) => number;
  logger: Pick<Logger, 'info' | 'warn'>;
  /** Reports to the operator when a circuit opens, and when it closes. */
  report: ReportIncident;
  nowMs: () => number;
  /** How long an open circuit waits before its probe. */
  resetMs: number;
  /** Beyond this many, the one that failed longest ago is dropped. */
  maxCircuits: number;
}

/** Longer than the longest wait of a deferred record. */
const FORGOTTEN_AFTER_MS = 12 * 3_600_000;
/** The size of one circuit in memory, mostly opossum's. */
export const CIRCUIT_BYTES = 13_000;

/** Circuits by endpoint: created at the first failure, dropped after two minutes without one. */
export class Circuits {
  readonly #deps: CircuitsDeps;
  /** By webhook id, in the order of their last failures. */
  readonly #circuits = new Map<string, Circuit>();
  /** Open circuits of former owners that were not needed here yet, by webhook id. */
  readonly #inherited = new Map<string, InheritedCircuit>();
  readonly #partitions = new PartitionsTakenOver();
  readonly #rotation = new EventEmitter().setMaxListeners(0);
  readonly #ticker: Ticker;

  constructor(deps: CircuitsDeps) {
    this.#deps = deps;
    this.#ticker = startTicker(OPENS_WHEN.windowMs / OPENS_WHEN.buckets, () => {
      this.#rotation.emit('rotate');
      this.#dropIdle();
    });
  }

  /** Circuits by state, for the metrics. */
  count(): Record<CircuitState, number> {
    const counted = { closed: 0, open: 0, half_open: 0 };
    for (const circuit of this.#circuits.values()) counted[circuit.state()] += 1;
    return counted;
  }

  /** How many open circuits of former owners are kept that were not needed yet. */
  inherited(): number {
    return this.#inherited.size;
  }

  stop(): void {
    this.#ticker.stop();
    for (const id of this.#circuits.keys()) this.#drop(id);
  }

  /**
   * Returns the circuit as the gate sees it for one attempt. Costs one map look-up: an endpoint that never failed has no
   * circuit. An attempt that a person asked for may be the probe before the circuit's own time.
   */
  viewOf({ webhookId, url, trigger, deferredSinceMs }: CircuitCandidate): CircuitView {
    const found = this.#circuits.get(webhookId);
    const circuit = found?.url === url ? found : undefined;
    const block = blockOf(circuit, trigger, this.#deps);
    return circuitViewOf(block, deferredSinceMs, this.#deps.nowMs());
  }

  /**
   * To be called for each attempt that arrives, before `viewOf`: drops the circuit of a former URL, and
   * creates that of a former owner. Returns the circuit of the endpoint, if it has one then.
   */
  refresh(endpoint: CircuitEndpoint): Circuit | undefined {
    const { webhookId: id, url } = endpoint;
    const circuit = this.#circuits.get(id);
    if (circuit?.url === url) return circuit;
    if (circuit) {
      const wasOpen = circuit.state() !== 'closed';
      this.#drop(id);
      this.#reportUrlChanged(circuit.owner, wasOpen);
    }
    const inherited = this.#inherited.get(id);
    if (!inherited) return undefined;
    this.#inherited.delete(id);
    return this.#create(endpoint, inherited);
  }

  /** To be called right after `viewOf` returned a closed circuit. Begins a probe unless the circuit is closed. */
  beginAttempt(endpoint: CircuitEndpoint): ReportToCircuit {
    const circuit = this.refresh(endpoint);
    if (circuit && circuit.state() !== 'closed') return this.#beginProbe(endpoint, circuit);
    const openings = circuit?.openings() ?? 0;
    return async (report) => {
      const hasFailed = this.#hasFailed(endpoint, report);
      if (report === null || hasFailed === null) return;
      const present = this.refresh(endpoint);
      if ((present?.openings() ?? 0) !== openings) return;
      if (present) await this.#countAttempt(endpoint, present, hasFailed);
      else if (hasFailed && this.#isOwned(endpoint)) {
        await this.#countAttempt(endpoint, this.#createSeeded(endpoint, report), true);
      }
    };
  }

  #beginProbe(endpoint: CircuitEndpoint, circuit: Circuit): ReportToCircuit {
    const endProbe = circuit.beginProbe();
    return (report) => {
      const hasFailed = this.#hasFailed(endpoint, report);
      if (hasFailed !== null && this.refresh(endpoint) === circuit) {
        this.#applyProbe(endpoint.webhookId, circuit, hasFailed);
      }
      endProbe();
      return Promise.resolve();
    };
  }

  /** Null when the attempt does not count. One to a former URL says nothing about the present one. */
  #hasFailed({ webhookId, url }: CircuitEndpoint, report: CircuitReport | null): boolean | null {
    const isOfFormerUrl = (this.#circuits.get(webhookId)?.url ?? url) !== url;
    return report && !isOfFormerUrl ? countsAsFailure(report) : null;
  }

  /** A circuit that closes is dropped: failures from before it opened must not open it at the next one. */
  #applyProbe(id: string, circuit: Circuit, hasFailed: boolean): void {
    circuit.endProbe(hasFailed);
    if (hasFailed) this.#moveToEnd(id, circuit);
    else this.#drop(id);
  }

  async #countAttempt(
    { webhookId }: CircuitEndpoint,
    circuit: Circuit,
    hasFailed: boolean,
  ): Promise<void> {
    if (circuit.state() !== 'closed') return;
    if (hasFailed) this.#moveToEnd(webhookId, circuit);
    await circuit.countAttempt(hasFailed);
  }

  #moveToEnd(id: string, circuit: Circuit): void {
    this.#circuits.delete(id);
    this.#circuits.set(id, circuit);
  }

  /** An attempt may end here after its partition has gone to another process, which has a circuit of its own. */
  #isOwned({ webhookId }: CircuitEndpoint): boolean {
    return this.#partitions.has(this.#deps.partitionOf(webhookId));
  }

  #createSeeded(endpoint: CircuitEndpoint, report: CircuitReport): Circuit {
    const circuit = this.#create(endpoint);
    const successes = seededSuccesses(report);
    for (let n = 0; n < successes; n += 1) void circuit.countAttempt(false);
    return circuit;
  }

  #create(endpoint: CircuitEndpoint, inherited?: InheritedCircuit): Circuit {
    const { webhookId, companyId, url } = endpoint;
    const { maxCircuits, partitionOf, nowMs, resetMs } = this.#deps;
    const [oldest] = this.#circuits.keys();
    if (oldest !== undefined && this.#circuits.size >= maxCircuits) this.#drop(oldest);
    const owner = { webhookId, companyId, partition: partitionOf(webhookId) };
    const options = { url, owner, resetMs, nowMs, rotation: this.#rotation, inherited };
    const circuit = createCircuit({ ...options, ...this.#changesOf(owner) });
    this.#circuits.set(webhookId, circuit);
    return circuit;
  }

  #drop(id: string): void {
    this.#circuits.get(id)?.shutDown();
    this.#circuits.delete(id);
  }

  /** Drops circuits that are closed and had no failure for a whole window, or open and not needed for twelve hours. */
  #dropIdle(): void {
    const { nowMs, shared } = this.#deps;
    for (const [id, circuit] of this.#circuits) {
      const isClosed = circuit.state() === 'closed';
      const keptMs = isClosed ? OPENS_WHEN.windowMs : FORGOTTEN_AFTER_MS;
      if (circuit.lastFailureMs() >= nowMs() - keptMs) continue;
      this.#drop(id);
      if (!isClosed) shared.closed(circuit.owner);
    }
    for (const [webhookId, { probeAtMs, companyId, partition }] of this.#inherited) {
      if (probeAtMs >= nowMs() - FORGOTTEN_AFTER_MS) continue;
      this.#inherited.delete(webhookId);
      shared.closed({ webhookId, companyId, partition });
    }
  }

  /**
   * To be called when the partitions of this process have changed. Drops the circuits of partitions that it does not have
   * now: their next owner changes them. Reads the open circuits of new partitions, for some seconds; those that Redis did
   * not return stay unknown until the next call.
   */
  async own(partitions: ReadonlySet<number>): Promise<void> {
    this.#partitions.own(partitions);
    for (const [id, { owner }] of this.#circuits) {
      if (!partitions.has(owner.partition)) this.#drop(id);
    }
    for (const [id, { partition }] of this.#inherited) {
      if (!partitions.has(partition)) this.#inherited.delete(id);
    }
    await this.#inherit();
  }

  /** To be called when Redis was away: stores the open circuits again, and reads those of former owners. */
  async restore(): Promise<void> {
    for (const circuit of this.#circuits.values()) {
      if (circuit.state() === 'closed') continue;
      const times = { probeAtMs: circuit.probeAtMs(), sinceMs: circuit.sinceMs() };
      this.#deps.shared.opened(circuit.owner, times);
    }
    this.#partitions.readAgain();
    await this.#inherit();
  }

  async #inherit(): Promise<void> {
    const { shared, logger } = this.#deps;
    const unread = this.#partitions.unread();
    if (unread.length === 0) return;
    try {
      const limits = {
        most: MAX_INHERITED - this.#inherited.size,
        withinMs: TAKEN_OVER_WITHIN_MS,
      };
      const { found, read } = await shared.takeOver(unread, limits);
      for (const [id, circuit] of found) this.#keepInherited(id, circuit);
      this.#partitions.markRead(read);
      const missed = unread.length - read.length;
      if (missed > 0)
        logger.warn({ partitions: missed }, 'cannot read all open circuits of former owners');
    } catch (error) {
      logger.warn({ error: messageOf(error) }, 'cannot read the open circuits of former owners');
    }
  }

  /** An open circuit of our own stays: it is as new as the shared one, or Redis was away when it opened. */
  #keepInherited(id: string, circuit: InheritedCircuit): void {
    const present = this.#circuits.get(id);
    if (!this.#partitions.has(circuit.partition) || (present && present.state() !== 'closed'))
      return;
    this.#drop(id);
    this.#inherited.set(id, circuit);
  }

  /** Reports changes of a circuit: to the next owner, in the log, and to the operator. */
  #changesOf(owner: CircuitOwner) {
    const { shared, logger, report, resetMs } = this.#deps;
    const whose = { webhookId: owner.webhookId, companyId: owner.companyId };
    return {
      onOpen(times: CircuitTimes) {
        shared.opened(owner, times);
        logger.info({ ...whose, resetMs }, 'circuit open');
        const detail = `most attempts of two minutes failed, the next one is made in ${resetMs} ms`;
        report({ type: 'circuit.opened', ...whose, detail });
      },
      onStayOpen(times: CircuitTimes) {
        shared.opened(owner, times);
        logger.info({ ...whose, resetMs }, 'circuit still open, the probe failed');
      },
      onClose() {
        shared.closed(owner);
        logger.info(whose, 'circuit closed');
        report({ type: 'circuit.closed', ...whose, detail: 'an attempt succeeded' });
      },
    };
  }

  /** Reports the circuit of a former URL as closed, if it was reported as open. */
  #reportUrlChanged(owner: CircuitOwner, wasOpen: boolean): void {
    const { shared, logger, report } = this.#deps;
    shared.closed(owner);
    if (!wasOpen) return;
    const whose = { webhookId: owner.webhookId, companyId: owner.companyId };
    logger.info(whose, 'circuit closed, the URL was changed');
    report({ type: 'circuit.closed', ...whose, detail: 'the URL of the webhook was changed' });
  }
}
