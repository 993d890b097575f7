import { MAX_HOLD_MS } from '@posthorn/domain/delivery/schedule.ts';
import {
  type EndpointFlow,
  type EndpointFlows,
  FLOW_TTL_MS,
  pauseKeyOf,
} from '@posthorn/platform/redis/endpoint-flows.ts';
import { concurrencyOf, type Endpoint, paceOf } from './endpoint.ts';

/** The endpoints of this process, see Queues. */
interface KnownEndpoints {
  endpoints: () => ReadonlyMap<string, Endpoint>;
  /** Forgets idle endpoints of webhooks that this process does not own. */
  forgetOthers: (isOwned: (webhookId: string) => boolean) => void;
  /** Applies the pauses of former owners to the known endpoints. */
  applyPauses: () => void;
}

interface HandoverDeps {
  known: () => KnownEndpoints;
  flows: Pick<EndpointFlows, 'report' | 'reportPause' | 'takeOverPauses'>;
  /** Returns the partition of the webhook's records. */
  partitionOf: (webhookId: string) => number;
  /** The limit of attempts at once of a new endpoint. */
  startConcurrency: number;
  /** The highest limit of attempts at once. */
  ceiling: number;
  nowMs: () => number;
  monotonicMs: () => number;
}

interface InheritedPause {
  /** Monotonic, milliseconds. */
  untilMs: number;
  partition: number;
}

interface Reported {
  key: string;
  /** Monotonic, milliseconds. */
  atMs: number;
}

/** An unchanged flow is reported again after this time, three times before Redis expires it. */
const REPEAT_AFTER_MS = FLOW_TTL_MS / 3;
/** At most this many in one tick; further ones follow in the next ticks. */
const MAX_PER_TICK = 1_000;
/** Further endpoints are not reported. */
const MAX_REPORTED = 20_000;
const REPORTED_BYTES = 256;
/** The memory for the reported endpoints. */
export const MAX_REPORTED_BYTES = MAX_REPORTED * REPORTED_BYTES;
/** Further pauses or open circuits of former owners are ignored, so that they do not fill the memory. */
export const MAX_INHERITED = 50_000;
/** The size of one of them: its id, its time and the hash of a URL. */
export const INHERITED_BYTES = 200;
/**
 * The records of new partitions wait for the circuits and pauses. Without an end, those of 2,400 partitions would wait
 * 300 s for a node of a Redis cluster that hangs.
 */
export const TAKEN_OVER_WITHIN_MS = 5_000;

/**
 * Hands endpoints over to the next owners of their partitions, through Redis, and takes them over from former owners.
 * Pauses are stored by partition, and read when the partition comes. Without Redis a new owner learns everything anew.
 */
export class Handover {
  readonly #deps: HandoverDeps;
  readonly #partitions = new PartitionsTakenOver();
  /** Pauses that former owners were asked for, by `pauseKeyOf`. */
  readonly #pauses = new Map<string, InheritedPause>();
  /** The flows that are in Redis, by webhook id. */
  readonly #reported = new Map<string, Reported>();

  constructor(deps: HandoverDeps) {
    this.#deps = deps;
  }

  /** How many pauses of former owners are kept. */
  inherited(): number {
    return this.#pauses.size;
  }

  /** The memory that the reported endpoints take. */
  reportedBytes(): number {
    return this.#reported.size * REPORTED_BYTES;
  }

  /**
   * To be called when the partitions of this process have changed. Forgets endpoints of partitions that it does not have
   * now: their next owner learns more about them. Reads the pauses of new partitions.
   */
  async own(partitions: ReadonlySet<number>): Promise<void> {
    this.#partitions.own(partitions);
    this.#deps.known().forgetOthers((webhookId) => this.#isOwned(webhookId));
    await this.#inherit();
  }

  /** To be called when Redis was away: reads the pauses of former owners. */
  async restore(): Promise<void> {
    this.#partitions.readAgain();
    await this.#inherit();
  }

  async #inherit(): Promise<void> {
    const { flows, known, nowMs, monotonicMs } = this.#deps;
    for (const [key, { untilMs, partition }] of this.#pauses) {
      if (untilMs <= monotonicMs() || !this.#partitions.has(partition)) this.#pauses.delete(key);
    }
    const unread = this.#partitions.unread();
    if (unread.length === 0) return;
    const limits = { most: MAX_INHERITED - this.#pauses.size, withinMs: TAKEN_OVER_WITHIN_MS };
    const taken = await flows.takeOverPauses(unread, limits).catch(() => null);
    if (!taken) return;
    for (const [key, { untilMs, partition }] of taken.found) {
      if (!this.#partitions.has(partition)) continue;
      // The clock of a former owner may be ahead of ours by any time: an hour is left at most.
      const leftMs = Math.min(untilMs - nowMs(), MAX_HOLD_MS);
      this.#pauses.set(key, { untilMs: monotonicMs() + leftMs, partition });
    }
    this.#partitions.markRead(taken.read);
    known().applyPauses();
  }

  #isOwned(webhookId: string): boolean {
    return this.#partitions.has(this.#deps.partitionOf(webhookId));
  }

  /** Returns when the pause that a former owner was asked for ends, monotonic; 0 without one. */
  pausedUntilMs(endpoint: { webhookId: string; url: string }): number {
    if (this.#pauses.size === 0) return 0;
    return this.#pauses.get(pauseKeyOf(endpoint))?.untilMs ?? 0;
  }

  /** Stores for the next owner that the endpoint asked for a pause of this many milliseconds. */
  reportPause({ webhookId, url }: { webhookId: string; url: string }, forMs: number): void {
    const { flows, partitionOf, nowMs } = this.#deps;
    const of = { webhookId, url, partition: partitionOf(webhookId) };
    flows.reportPause(of, Math.ceil(nowMs() + forMs));
  }

  /** Reports the endpoints that are treated differently from a new one to the gateways. To be called each second. */
  tick(): void {
    const { known, flows, monotonicMs } = this.#deps;
    const nowMs = monotonicMs();
    for (const [id, { atMs }] of this.#reported)
      if (nowMs - atMs > FLOW_TTL_MS) this.#reported.delete(id);
    const reports = new Map<string, EndpointFlow>();
    for (const endpoint of known().endpoints().values()) {
      if (reports.size >= MAX_PER_TICK) break;
      const { webhookId } = endpoint;
      const flow = this.#flowOf(endpoint, nowMs);
      const key = reportKeyOf(flow, endpoint);
      // What is learned here of another one's endpoint ends with the attempts that are under way.
      if (!this.#isDue(webhookId, flow, key, nowMs) || !this.#isOwned(webhookId)) continue;
      reports.set(webhookId, flow);
      this.#reported.set(webhookId, { key, atMs: nowMs });
    }
    if (reports.size > 0) flows.report(reports);
  }

  #flowOf(endpoint: Endpoint, monotonicMs: number): EndpointFlow {
    const { pausedUntilMs } = endpoint;
    const { ceiling, nowMs } = this.#deps;
    const pace = paceOf(endpoint, monotonicMs);
    return {
      concurrency: concurrencyOf(endpoint),
      ceiling,
      ratePerSecond: pace === null ? null : Math.round(pace * 10) / 10,
      heldUntilMs:
        pausedUntilMs > monotonicMs ? Math.round(nowMs() + pausedUntilMs - monotonicMs) : null,
    };
  }

  #isDue(webhookId: string, flow: EndpointFlow, key: string, nowMs: number): boolean {
    const before = this.#reported.get(webhookId);
    if (before) return before.key !== key || nowMs - before.atMs >= REPEAT_AFTER_MS;
    if (this.#reported.size >= MAX_REPORTED) return false;
    return (
      flow.concurrency !== this.#deps.startConcurrency ||
      flow.ratePerSecond !== null ||
      flow.heldUntilMs !== null
    );
  }
}

/**
 * Contains the monotonic end of the pause: converted to wall-clock time it differs by a millisecond each
 * time.
 */
function reportKeyOf(
  { concurrency, ratePerSecond, heldUntilMs }: EndpointFlow,
  { pausedUntilMs }: Endpoint,
): string {
  return JSON.stringify([concurrency, ratePerSecond, heldUntilMs === null ? null : pausedUntilMs]);
}

/** The partitions of this process, and whether it has read what their former owners left in Redis. */
export class PartitionsTakenOver {
  #owned: ReadonlySet<number> = new Set();
  readonly #read = new Set<number>();

  own(partitions: ReadonlySet<number>): void {
    this.#owned = partitions;
    for (const partition of this.#read) if (!this.has(partition)) this.#read.delete(partition);
  }

  has(partition: number): boolean {
    return this.#owned.has(partition);
  }

  unread(): number[] {
    return [...this.#owned].filter((partition) => !this.#read.has(partition));
  }

  /** Ignores partitions that have gone meanwhile. */
  markRead(partitions: readonly number[]): void {
    for (const partition of partitions) if (this.has(partition)) this.#read.add(partition);
  }

  readAgain(): void {
    this.#read.clear();
  }
}
