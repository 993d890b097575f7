import { MAX_HOLD_MS } from '@posthorn/domain/delivery/schedule.ts';
import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import {
  type EndpointFlow,
  type EndpointFlows,
  FLOW_TTL_MS,
  pauseKeyOf,
  urlHashOf,
} from '@posthorn/platform/redis/endpoint-flows.ts';
import {
  concurrencyOf,
  type Endpoint,
  handOver,
  type HandedOverEndpoint,
  isSlow,
  paceOf,
} from './endpoint.ts';

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
  flows: Pick<EndpointFlows, 'report' | 'readAll' | 'reportPause' | 'takeOverPauses'>;
  /** Returns the partition of the webhook's records. */
  partitionOf: (webhookId: string) => number;
  /** The limit of attempts at once of a new endpoint. */
  startConcurrency: number;
  /** The highest limit of attempts at once. */
  ceiling: number;
  nowMs: () => number;
  monotonicMs: () => number;
  /** Calls `act` in the next iteration of the event loop. */
  inNextLoop: (act: () => void) => void;
  /** Calls `wake` after this time. Returns a function that cancels the timer. */
  wakeAfter: (ms: number, wake: () => void) => () => void;
}

/** Where attempts go. */
type Target = Pick<Endpoint, 'webhookId' | 'url'>;

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
/** The first attempts of an endpoint wait this long for what its former owner has learned; then it is a new endpoint. */
const LEARNED_WITHIN_MS = 100;
const READS = { maxItems: 500, lingerMs: 0, maxInFlight: 2 };
/** While Redis hangs, no more endpoints than these wait to be read. */
const MAX_READING = 10_000;

/**
 * Hands endpoints over to the next owners of their partitions, through Redis, and takes them over from former owners.
 * Pauses are stored by partition, and read when the partition comes: the first attempt must not disregard one. Limits,
 * learned rates and slowness are stored by webhook, and read when the first attempt to the endpoint comes: there may be
 * any number of them, and most get no attempt before they expire. Without Redis a new owner learns everything anew.
 */
export class Handover {
  readonly #deps: HandoverDeps;
  readonly #partitions = new PartitionsTakenOver();
  /** Pauses that former owners were asked for, by `pauseKeyOf`. */
  readonly #pauses = new Map<string, InheritedPause>();
  /** The flows that are in Redis, by webhook id. */
  readonly #reported = new Map<string, Reported>();
  /** How many endpoints the last tick has passed; 0 to begin anew. */
  #continueAfter = 0;
  /** Partitions that have come → when (monotonic) everything that their former owners have learned has expired. */
  readonly #learnedUntilMs = new Map<number, number>();
  readonly #reads;
  /** Webhook id → the read of its flow. */
  readonly #reading = new Map<string, Promise<EndpointFlow | null>>();

  constructor(deps: HandoverDeps) {
    this.#deps = deps;
    this.#reads = createBatcher({ ...READS, run: deps.flows.readAll });
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
    const untilMs = this.#deps.monotonicMs() + FLOW_TTL_MS;
    for (const each of partitions)
      if (!this.#partitions.has(each)) this.#learnedUntilMs.set(each, untilMs);
    for (const each of this.#learnedUntilMs.keys())
      if (!partitions.has(each)) this.#learnedUntilMs.delete(each);
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

  /**
   * Resolves with what the former owner of the endpoint has learned, or with null after a tenth of a second. Returns null
   * at once for a known endpoint, and when its partition has been here for longer than a report lasts.
   */
  learned({ webhookId, url }: Target): Promise<HandedOverEndpoint | null> | null {
    // For each attempt: the partition is computed for new endpoints only.
    if (this.#learnedUntilMs.size === 0 || this.#deps.known().endpoints().has(webhookId))
      return null;
    const partition = this.#deps.partitionOf(webhookId);
    const untilMs = this.#learnedUntilMs.get(partition);
    if (untilMs === undefined) return null;
    if (untilMs <= this.#deps.monotonicMs()) {
      this.#learnedUntilMs.delete(partition);
      return null;
    }
    if (!this.#reading.has(webhookId) && this.#reads.size() >= MAX_READING) return null;
    return this.#readFlow(webhookId).then((flow) => learnedAt(url, flow));
  }

  /** All attempts of the webhook that come meanwhile wait for one read. */
  #readFlow(webhookId: string): Promise<EndpointFlow | null> {
    const present = this.#reading.get(webhookId);
    if (present) return present;
    const reading = this.#unlessLate(this.#reads.add(webhookId))
      .catch(() => null)
      .finally(() => {
        this.#reading.delete(webhookId);
      });
    this.#reading.set(webhookId, reading);
    return reading;
  }

  /**
   * Resolves with null when the reply is late. In a process that is short of CPU it may have come when the timer fires,
   * and is read before the next iteration of the event loop.
   */
  async #unlessLate(read: Promise<EndpointFlow | null>): Promise<EndpointFlow | null> {
    const { wakeAfter, inNextLoop } = this.#deps;
    let cancel = (): void => undefined;
    const late = new Promise<null>((resolve) => {
      cancel = wakeAfter(LEARNED_WITHIN_MS, () => {
        inNextLoop(() => {
          resolve(null);
        });
      });
    });
    return Promise.race([read, late]).finally(cancel);
  }

  /** Returns when the pause that a former owner was asked for ends, monotonic; 0 without one. */
  pausedUntilMs(endpoint: Target): number {
    if (this.#pauses.size === 0) return 0;
    return this.#pauses.get(pauseKeyOf(endpoint))?.untilMs ?? 0;
  }

  /** Stores for the next owner that the endpoint asked for a pause of this many milliseconds. */
  reportPause({ webhookId, url }: Target, forMs: number): void {
    const { flows, partitionOf, nowMs } = this.#deps;
    const of = { webhookId, url, partition: partitionOf(webhookId) };
    flows.reportPause(of, Math.ceil(nowMs() + forMs));
  }

  /**
   * Reports the endpoints that are treated differently from a new one, to the gateways and for their next owner. To be
   * called each second.
   */
  tick(): void {
    const { known, flows, monotonicMs } = this.#deps;
    const nowMs = monotonicMs();
    for (const [id, { atMs }] of this.#reported)
      if (nowMs - atMs > FLOW_TTL_MS) this.#reported.delete(id);
    const reports = new Map<string, EndpointFlow>();
    let seen = 0;
    for (const endpoint of known().endpoints().values()) {
      seen += 1;
      if (seen <= this.#continueAfter) continue;
      if (reports.size >= MAX_PER_TICK) break;
      const { webhookId } = endpoint;
      const flow = this.#flowOf(endpoint, nowMs);
      const key = reportKeyOf(flow, endpoint, nowMs);
      // The knowledge about another one's endpoint ends with the attempts that are under way.
      if (!this.#isDue(endpoint, flow, key) || !this.#isOwned(webhookId)) continue;
      const learned = { ...handOver(endpoint, nowMs), urlHash: urlHashOf(endpoint.url) };
      reports.set(webhookId, { ...flow, learned });
      this.#reported.set(webhookId, { key, atMs: nowMs });
    }
    // Endpoints that change in each tick must not keep the ones behind them from their turn.
    this.#continueAfter = reports.size >= MAX_PER_TICK ? seen - 1 : 0;
    if (reports.size > 0) flows.report(reports);
  }

  #flowOf(endpoint: Endpoint, monotonicMs: number): ShownFlow {
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

  #isDue(endpoint: Endpoint, flow: ShownFlow, key: string): boolean {
    const nowMs = this.#deps.monotonicMs();
    const before = this.#reported.get(endpoint.webhookId);
    if (before) return before.key !== key || nowMs - before.atMs >= REPEAT_AFTER_MS;
    if (this.#reported.size >= MAX_REPORTED) return false;
    return (
      flow.concurrency !== this.#deps.startConcurrency ||
      flow.ratePerSecond !== null ||
      flow.heldUntilMs !== null ||
      isSlow(endpoint, nowMs)
    );
  }
}

/** Another URL is another endpoint. */
function learnedAt(url: string, flow: EndpointFlow | null): HandedOverEndpoint | null {
  return flow?.learned.urlHash === urlHashOf(url) ? flow.learned : null;
}

/** The part of a flow that changes when it is to be reported again. */
type ShownFlow = Omit<EndpointFlow, 'learned'>;

/**
 * Contains the monotonic end of the pause: converted to wall-clock time it differs by a millisecond each
 * time.
 */
function reportKeyOf(
  { concurrency, ratePerSecond, heldUntilMs }: ShownFlow,
  endpoint: Endpoint,
  nowMs: number,
): string {
  const pausedUntilMs = heldUntilMs === null ? null : endpoint.pausedUntilMs;
  return JSON.stringify([concurrency, ratePerSecond, pausedUntilMs, isSlow(endpoint, nowMs)]);
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
