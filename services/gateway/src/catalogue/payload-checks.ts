import { createFairQueue } from '@posthorn/platform/async/fair-queue.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { Counter, Histogram, type Registry } from 'prom-client';
import { Worker } from 'node:worker_threads';
import type { CheckResult } from './check-payload.ts';
import type { CheckAnswer, CheckRequest } from './check-worker.ts';
import { SchemaStrikes } from './schema-strikes.ts';

/** A schema as checks name it. */
export interface CheckedSchema {
  /** Names company and text: another text has another id. */
  id: string;
  text: string;
  /** The event type, for the log. */
  eventTypeId: string;
}

/** A payload with the schema that it has to meet. */
export interface PayloadToCheck {
  schema: CheckedSchema;
  payload: string;
}

/** A check ended without a result: it took too long, or its schema has before. */
export type CheckOutcome = CheckResult | { kind: 'too_slow' };

export interface PayloadChecks {
  /**
   * Checks payloads of one company in the worker thread, in its turn, and returns what became of each, in their order.
   * Rejects when the worker cannot be started, and when the process stops.
   */
  check: (companyId: string, payloads: readonly PayloadToCheck[]) => Promise<CheckOutcome[]>;
  /** Stops the worker. */
  close: () => Promise<void>;
}

export interface PayloadCheckDeps {
  registry: Registry;
  logger: Pick<Logger, 'warn' | 'error'>;
  /** Adds the time of the worker to the work of its company. */
  charge: (companyId: string, workMs: number) => void;
  monotonicMs: () => number;
  /** The processor time that the worker has for a request. */
  limitMs?: number;
}

/** docs/contract.md C28.7. */
const LIMIT_MS = 100;
/** On a machine that has no processor time to spare, a check has so many times its limit. */
const WALL_FACTOR = 10;
/** How much longer a check is let go at least, once it is known how much time it has used. */
const RECHECK_MS = 10;
/** Of one request to the worker, of a batch. */
const MAX_REQUEST_CHARS = 65_536;
/** The time of the worker for which a company has its turn. */
const QUANTUM_MS = 1;
/** An honest check needs 2 MB; parsed schemas have 16 MiB. */
const MEMORY = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };

/** A request that waits for the worker, or is with it. */
interface Job {
  companyId: string;
  payloads: readonly PayloadToCheck[];
  resolve: (outcomes: CheckOutcome[]) => void;
  reject: (error: unknown) => void;
}

interface Running {
  job: Job;
  startedMs: number;
}

/**
 * One worker thread checks the payloads of all companies, which take turns (docs/decisions/0067-schemas-are-checked-in-a-worker.md).
 * The thread is there to be stopped: a check that uses up its time ends with it, and another one is started for the others.
 */
export function createPayloadChecks(deps: PayloadCheckDeps): PayloadChecks {
  return new WorkerChecks(deps);
}

class WorkerChecks implements PayloadChecks {
  readonly #deps: PayloadCheckDeps;
  readonly #limitMs: number;
  readonly #queue = createFairQueue<Job>(QUANTUM_MS);
  readonly #strikes: SchemaStrikes;
  readonly #metrics: CheckMetrics;
  #thread: CheckThread | null = null;
  #running: Running | null = null;
  #isClosed = false;

  constructor(deps: PayloadCheckDeps) {
    this.#deps = deps;
    this.#limitMs = deps.limitMs ?? LIMIT_MS;
    this.#strikes = new SchemaStrikes(deps.monotonicMs);
    this.#metrics = createCheckMetrics(deps.registry);
  }

  async check(companyId: string, payloads: readonly PayloadToCheck[]): Promise<CheckOutcome[]> {
    const slices = slicesOf(payloads).map((slice) => this.#add(companyId, slice));
    return (await Promise.all(slices)).flat();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const error = new Error('payloads are not checked any more: the process stops');
    if (this.#running) this.#running.job.reject(error);
    for (let job = this.#take(); job; job = this.#take()) job.reject(error);
    await this.#thread?.stop();
  }

  #add(companyId: string, payloads: readonly PayloadToCheck[]): Promise<CheckOutcome[]> {
    return new Promise((resolve, reject) => {
      this.#queue.push(companyId, { companyId, payloads, resolve, reject });
      this.#next();
    });
  }

  #take(): Job | undefined {
    const job = this.#queue.next();
    if (job) this.#queue.charge(0, true);
    return job;
  }

  /** Gives the next request to the worker when that is idle. */
  #next(): void {
    if (this.#running || this.#isClosed) return;
    for (let job = this.#take(); job; job = this.#take()) {
      const { companyId } = job;
      const wanted = job.payloads.filter(({ schema }) => !this.#isBlocked(companyId, schema));
      if (wanted.length > 0) {
        this.#send({ ...job, payloads: wanted, resolve: this.#withBlocked(job) });
        return;
      }
      job.resolve(job.payloads.map(() => TOO_SLOW));
    }
  }

  #isBlocked(companyId: string, { id }: CheckedSchema): boolean {
    return this.#strikes.areBlocking(companyId, id);
  }

  /** Returns a function that takes the outcomes of those that are not blocked now. */
  #withBlocked({ companyId, payloads, resolve }: Job): Job['resolve'] {
    const isBlocked = payloads.map(({ schema }) => this.#isBlocked(companyId, schema));
    return (outcomes) => {
      let next = 0;
      resolve(isBlocked.map((blocked) => (blocked ? TOO_SLOW : (outcomes[next++] ?? TOO_SLOW))));
    };
  }

  #send(job: Job): void {
    this.#thread ??= this.#open();
    this.#running = { job, startedMs: this.#deps.monotonicMs() };
    this.#thread.send(job.payloads);
  }

  #open(): CheckThread {
    const { monotonicMs } = this.#deps;
    const thread: CheckThread = new CheckThread({
      limitMs: this.#limitMs,
      monotonicMs,
      onChecked: (results) => {
        this.#end()?.resolve(results);
        this.#next();
      },
      onTooSlow: (why) => {
        if (this.#thread === thread) this.#thread = null;
        const job = this.#end();
        if (job) this.#strike(job, why);
        this.#next();
      },
      onFailed: (error) => {
        if (this.#thread === thread) this.#thread = null;
        this.#end()?.reject(error);
        this.#next();
      },
    });
    return thread;
  }

  /** Returns the request that was with the worker, and charges its company. */
  #end(): Job | null {
    const running = this.#running;
    this.#running = null;
    if (!running) return null;
    const { job, startedMs } = running;
    const tookMs = this.#deps.monotonicMs() - startedMs;
    this.#queue.chargeKey(job.companyId, tookMs);
    this.#deps.charge(job.companyId, tookMs);
    this.#metrics.seconds.observe(tookMs / 1_000);
    return job;
  }

  /** Of several payloads each is checked alone, to find the one that is slow. */
  #strike({ companyId, payloads, resolve, reject }: Job, why: string): void {
    const [first, ...others] = payloads;
    if (!first || others.length > 0) {
      const alone = payloads.map((each) => this.#add(companyId, [each]));
      Promise.all(alone).then((outcomes) => {
        resolve(outcomes.flat());
      }, reject);
      return;
    }
    const { id, eventTypeId } = first.schema;
    this.#metrics.strikes.inc();
    const blocks = this.#strikes.add(companyId, id);
    const fields = { companyId, eventTypeId, blocks };
    this.#deps.logger.warn(fields, `a payload ${why} to check by the schema of its event type`);
    resolve([TOO_SLOW]);
  }
}

const TOO_SLOW = { kind: 'too_slow' } as const;

/** Returns the payloads in slices of at most 64 KiB, a longer one alone. */
function slicesOf(payloads: readonly PayloadToCheck[]): PayloadToCheck[][] {
  const slices: PayloadToCheck[][] = [];
  let chars = Infinity;
  for (const each of payloads) {
    chars += each.payload.length;
    if (chars > MAX_REQUEST_CHARS) {
      slices.push([]);
      chars = each.payload.length;
    }
    slices.at(-1)?.push(each);
  }
  return slices;
}

interface CheckMetrics {
  seconds: Histogram;
  strikes: Counter;
}

/** Of both kinds of processes that accept messages. */
export function createCheckMetrics(registry: Registry): CheckMetrics {
  const registers = [registry];
  return {
    seconds: new Histogram({
      name: 'posthorn_payload_check_seconds',
      help: 'Time of the worker thread for a request to check payloads by the schemas of their event types; of a batch, for each 64 KiB.',
      buckets: [0.000_1, 0.000_5, 0.002, 0.01, 0.05, 0.1, 1],
      registers,
    }),
    strikes: new Counter({
      name: 'posthorn_schema_strikes_total',
      help: 'Checks of payloads that were stopped because the schema of the event type needs too much time or memory.',
      registers,
    }),
  };
}

interface ThreadDeps {
  limitMs: number;
  monotonicMs: () => number;
  onChecked: (results: CheckResult[]) => void;
  /** The thread was stopped with the request that it had. */
  onTooSlow: (why: string) => void;
  /** The thread could not be started, or has ended by itself. */
  onFailed: (error: unknown) => void;
}

/** A worker thread with at most one request. It calls one of the functions of its deps for each, and none after it was stopped. */
class CheckThread {
  readonly #deps: ThreadDeps;
  readonly #worker: Worker;
  /** The ids of schemas that the worker was given; it may have dropped some. */
  readonly #given = new Set<string>();
  /** The processor time of the thread when it answered last. */
  #cpuMs = 0;
  #isReady = false;
  #isStopped = false;
  #payloads: readonly PayloadToCheck[] | null = null;
  /** Of the requests. */
  #number = 0;
  #startedMs = 0;
  readonly #watch: NodeJS.Timeout;

  constructor(deps: ThreadDeps) {
    this.#deps = deps;
    // Without the environment of the process, which has its secrets.
    this.#worker = new Worker(new URL('check-worker.ts', import.meta.url), {
      name: 'payload checks',
      env: {},
      resourceLimits: MEMORY,
    });
    this.#worker.unref();
    this.#worker.on('message', (answer: CheckAnswer) => {
      this.#onAnswer(answer);
    });
    this.#worker.on('error', (error: Error) => {
      this.#onError(error);
    });
    this.#watch = setTimeout(() => void this.#stopIfSlow(), deps.limitMs).unref();
  }

  send(payloads: readonly PayloadToCheck[]): void {
    this.#payloads = payloads;
    if (this.#isReady) this.#post(payloads);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#watch);
    await this.#worker.terminate();
  }

  #post(payloads: readonly PayloadToCheck[]): void {
    const schemas = new Map<string, string>();
    for (const { schema } of payloads) {
      if (!this.#given.has(schema.id)) schemas.set(schema.id, schema.text);
      this.#given.add(schema.id);
    }
    const request: CheckRequest = {
      schemas: Array.from(schemas, ([id, text]) => ({ id, text })),
      checks: payloads.map(({ schema, payload }) => ({ schemaId: schema.id, payload })),
    };
    this.#number += 1;
    this.#startedMs = this.#deps.monotonicMs();
    this.#worker.postMessage(request);
    this.#watch.refresh();
  }

  #onAnswer(answer: CheckAnswer): void {
    if (this.#isStopped) return;
    this.#cpuMs = answer.cpuMs;
    const payloads = this.#payloads;
    switch (answer.kind) {
      case 'ready':
        this.#isReady = true;
        if (payloads) this.#post(payloads);
        return;
      case 'missing':
        for (const id of answer.schemaIds) this.#given.delete(id);
        if (payloads) this.#post(payloads);
        return;
      case 'checked':
        this.#payloads = null;
        this.#deps.onChecked(answer.results);
    }
  }

  #onError(error: Error): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    clearTimeout(this.#watch);
    const isMemory = 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
    if (isMemory && this.#isReady) this.#deps.onTooSlow('takes too much memory');
    else this.#deps.onFailed(error);
  }

  /** Stops the thread when its request has used up its time. */
  async #stopIfSlow(): Promise<void> {
    const { limitMs, monotonicMs, onTooSlow } = this.#deps;
    const number = this.#number;
    if (!this.#payloads || !this.#isReady) return;
    const usedMs = await this.#usedMs();
    if (!this.#isAt(number)) return;
    const tookMs = monotonicMs() - this.#startedMs;
    if (usedMs < limitMs && tookMs < limitMs * WALL_FACTOR) {
      const leftMs = Math.max(limitMs - usedMs, RECHECK_MS);
      setTimeout(() => void this.#stopIfSlow(), leftMs).unref();
      return;
    }
    void this.stop();
    onTooSlow('takes too long');
  }

  /** Whether the thread works on this request: meanwhile it may have answered, and have the next one. */
  #isAt(number: number): boolean {
    return !this.#isStopped && number === this.#number && this.#payloads !== null;
  }

  /** The processor time of the request; without limit for a thread that does not report it. */
  async #usedMs(): Promise<number> {
    const silent = new Promise<null>((resolve) => {
      setTimeout(resolve, this.#deps.limitMs, null).unref();
    });
    const used = await Promise.race([this.#worker.cpuUsage().catch(() => null), silent]);
    return used ? (used.user + used.system) / 1_000 - this.#cpuMs : Infinity;
  }
}
