import type { Message } from '@posthorn/domain/message.ts';
import { ImpossibleError, requiredAt } from '@posthorn/domain/required.ts';
import { createAdaptiveLinger, createBatcher } from '@posthorn/platform/async/batcher.ts';
import type { InsertOutcome } from '@posthorn/platform/mongo/messages/messages.ts';
import type { MessageCounter } from '@posthorn/platform/mongo/messages/write-stats.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { type PolicedMessage, refusalsOf } from '../catalogue/message-policy.ts';
import type { PayloadChecks } from '../catalogue/payload-checks.ts';
import { isFault, isTemporary, notFound, overloaded, unavailable } from '../api-error.ts';
import type { NextSlice } from '../limits/slices.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { PublicationWait } from '../outbox/publication-waits.ts';
import {
  type AcceptQueueLimit,
  batchCostOf,
  createAcceptQueueLimit,
  fanOutMsOf,
  memoryBytesOf,
  memoryBytesOfBody,
} from './accept-queue.ts';
import {
  type Accepted,
  assertTimes,
  buildMessage,
  type BuildMessageDeps,
  isInSequence,
  type NewMessage,
  type ResolvedRequest,
  type SendOrder,
} from './build-message.ts';
import { type Address, type Candidates, lookUpEach, type TargetResolver } from './targets.ts';

export type { Accepted, NewMessage } from './build-message.ts';

interface AcceptDeps extends BuildMessageDeps {
  logger: Logger;
  targets: Pick<TargetResolver, 'candidatesOf'>;
  /** Checks payloads where a project wants that. */
  checks: Pick<PayloadChecks, 'check'>;
  outbox: Pick<Outbox, 'store' | 'whenPublished'>;
  /** Counts a stored message for its company, which pays for it. */
  counts: MessageCounter;
  /** Memory for waiting requests, in bytes. */
  acceptQueueBytes: number;
  /** How long a message waits for others at most, to be stored and published with them. */
  maxLingerMs: number;
  /** Milliseconds of the monotonic clock. */
  monotonicMs: () => number;
}

/** What became of a request. A message whose deliveries are in order is accepted once Kafka has its records. */
export type AcceptResult =
  | (Accepted & { kind: 'accepted' })
  /** Another message has its idempotency key. */
  | { kind: 'repeated' }
  | Failed;

/**
 * `error` is an ApiError: 404 for an unknown app or webhook, 409 for too many targets, 422 for what the catalogue of the
 * project refuses, 503 when the message is not known
 * to be stored. Or it is what `nextSlice` threw, what the store threw, or a fault of ours (`isTemporary` in api-error.ts).
 */
export interface Failed {
  kind: 'failed';
  error: unknown;
}

export interface AcceptOptions {
  /** Takes a turn for each slice of several messages, and for each message to many webhooks. */
  nextSlice?: NextSlice | undefined;
  /**
   * Once it is aborted, no further message is stored, and everything that is not known to be stored has failed with 503.
   * Without it the results are awaited for as long as the driver waits for MongoDB.
   */
  deadline?: AbortSignal | undefined;
  /**
   * After a message that may be accepted later (`isTemporary`) nothing behind it is stored: sent again, it would get an
   * id behind theirs.
   */
  isInOrder?: true | undefined;
  /**
   * Settles the idempotency keys of these requests before any of them is stored: what is behind a repeat must not be
   * published before that is. It is called in a call in order, for messages in order. Rejects when a key is not settled.
   */
  settleKeys?: ((requests: readonly NewMessage[]) => Promise<void>) | undefined;
}

export interface AcceptMessages {
  /**
   * Stores messages of one company, and returns what became of each, in their order. Never rejects. The ids of the
   * accepted ones are in that order too.
   */
  accept: (requests: readonly NewMessage[], options?: AcceptOptions) => Promise<AcceptResult[]>;
  /** Resolves when every insert has ended, including those whose client has disconnected. */
  idle: () => Promise<void>;
  /** False when a request of this company would be refused for lack of memory. */
  hasRoom: (companyId: string, bytes: number) => boolean;
  /** The memory that waiting requests use, by estimate. */
  usedBytes: () => number;
}

/**
 * One insert in flight: ids must grow in the order of the inserts, and it was measured fastest and
 * cheapest (docs/decisions/0002-group-commit.md). `maxItems` is a sum of costs (see batchCostOf).
 */
const GROUP_COMMIT = { maxItems: 200, maxInFlight: 1 };
/** A message waits for others where the usual interval between two is at most half of the longest wait. */
const LINGER = { minExpected: 2, enough: 8, patience: 3 };
/** With more waiting requests than this, the store cannot keep up; further ones get 503. */
const MAX_WAITING = 5_000;

/** Several messages are resolved and handed to the store in slices: 100 take the process about a millisecond. */
const SLICE = 100;
/**
 * Messages of one call that wait for the store at once: two of its batches, so that it always finds the next one. With all
 * 1,000, three calls would use up the places of their company, and its single messages would wait behind them.
 */
const WINDOW = 400;
/**
 * What one of several messages costs the process when it is built, stored and published: in batches of 100 it takes 0.13 ms
 * of the gateway's CPU, of which about a quarter is its share of reading the body (`npm run bench -- batch`).
 */
const MS_PER_MESSAGE = 0.1;

/**
 * Accept: the majority write of the message is the acceptance. Companies take turns in
 * the batches. The messages are published after the write, which never delays the response.
 */
export function createAcceptMessages(deps: AcceptDeps): AcceptMessages {
  const limit = createAcceptQueueLimit({ requests: MAX_WAITING, bytes: deps.acceptQueueBytes });
  const store = createBatcher<ResolvedRequest, AcceptResult>({
    ...GROUP_COMMIT,
    lingerMs: createAdaptiveLinger({ ...LINGER, maxLingerMs: deps.maxLingerMs }, deps.monotonicMs),
    keyOf: ({ request }) => request.companyId,
    costOf: batchCostOf,
    run: (batch) => storeInOrder(deps, batch),
  });
  const callDeps = { ...deps, limit, store: store.add };
  return {
    accept: (requests, options = {}) => new AcceptCall(callDeps, requests, options).run(),
    hasRoom: (companyId, bytes) => limit.hasRoom(companyId, memoryBytesOfBody(bytes)),
    idle: store.idle,
    usedBytes: limit.usedBytes,
  };
}

const NONE_REFUSED: ReadonlyMap<number, Failed> = new Map();

interface CallDeps extends AcceptDeps {
  limit: AcceptQueueLimit;
  store: (resolved: ResolvedRequest) => Promise<AcceptResult>;
}

/** Resolves the messages of one call and hands them to the store, in order. */
class AcceptCall {
  readonly #deps: CallDeps;
  readonly #requests: readonly NewMessage[];
  readonly #options: AcceptOptions;
  /** By the place of the request. */
  readonly #results: (AcceptResult | undefined)[];
  /** The inserts that have begun, in order. */
  readonly #inserts: Promise<void>[] = [];
  /** The result of every message without one of its own. */
  #rest: Failed | null = null;
  /** Of a call in order. */
  readonly #order: SendOrder | undefined;
  readonly #waits = new Set<PublicationWait>();

  constructor(deps: CallDeps, requests: readonly NewMessage[], options: AcceptOptions) {
    this.#deps = deps;
    this.#requests = requests;
    this.#options = options;
    this.#results = requests.map(() => undefined);
    this.#order = options.isInOrder && { isBroken: false };
  }

  async run(): Promise<AcceptResult[]> {
    const { deadline } = this.#options;
    const working = this.#storeAll();
    await (deadline ? Promise.race([working, whenOver(deadline)]) : working);
    for (const wait of this.#waits) wait.giveUp();
    return this.#results.map(
      (result) => result ?? (this.#rest ??= failedBy(unavailable('deadline_over'))),
    );
  }

  async #storeAll(): Promise<void> {
    await this.#beginAll().catch((error: unknown) => {
      this.#rest = failedBy(error);
    });
    await Promise.all(this.#inserts);
  }

  /** Rejects when a turn does, and when there is no memory for a message: it and all behind it are not stored. */
  async #beginAll(): Promise<void> {
    const { deadline, nextSlice } = this.#options;
    const isOver = (): boolean => deadline?.aborted === true;
    for (let from = 0; from < this.#requests.length; from += SLICE) {
      await this.#inserts.at(-WINDOW);
      if (isOver()) return;
      const slice = this.#requests.slice(from, from + SLICE);
      if (this.#requests.length > 1) await nextSlice?.(slice.length * MS_PER_MESSAGE);
      const targetsOf = await this.#resolve(slice);
      if (this.#order) await this.#settleKeys(slice, targetsOf);
      if (isOver()) return;
      const all = slice.map((each) => this.#refusalOf(each) ?? targetsOf(each.address));
      const refused = await this.#refusedByCatalogue(slice, all);
      for (const [index, request] of slice.entries()) {
        // A look-up, a turn or the wait for memory may have lasted beyond it.
        if (isOver()) return;
        const found = refused.get(index) ?? requiredAt(all, index, 'targets of the message');
        if (!('error' in found)) {
          const targets = found.select ? await found.select(request, nextSlice) : found;
          if (isOver()) return;
          await this.#begin(from + index, { ...targets, request, order: this.#order });
          continue;
        }
        if (this.#order && isTemporary(found.error) && !isFault(found.error)) throw found.error;
        this.#results[from + index] = found;
      }
    }
  }

  async #settleKeys(
    slice: readonly NewMessage[],
    targetsOf: (address: Address) => Candidates | Failed,
  ): Promise<void> {
    const { settleKeys } = this.#options;
    if (!settleKeys || this.#requests.length === 1) return;
    const keyed = slice.filter(({ idempotency, given = {}, address }) => {
      const found = idempotency && targetsOf(address);
      return found && !('error' in found) && isInSequence(given, found.orderedTargets);
    });
    if (keyed.length > 0) await settleKeys(keyed);
  }

  /** As a refusal like that of an unknown webhook: the repeat of an accepted request gets its response later too. */
  #refusalOf(request: NewMessage): Failed | null {
    try {
      assertTimes(request, this.#deps);
      return null;
    } catch (error) {
      return failedBy(error);
    }
  }

  /** Of most messages nothing is looked up. */
  async #refusedByCatalogue(
    slice: readonly NewMessage[],
    found: readonly (Candidates | Failed)[],
  ): Promise<ReadonlyMap<number, Failed>> {
    const indexes: number[] = [];
    const messages: PolicedMessage[] = [];
    found.forEach((each, index) => {
      const request = slice[index];
      if ('error' in each || !each.policy || !request || request.isTest) return;
      const { eventType, payload } = request;
      indexes.push(index);
      messages.push({ policy: each.policy, eventType, payload });
    });
    if (messages.length === 0) return NONE_REFUSED;
    const errors = await refusalsOf(this.#deps.checks, this.#companyId(), messages);
    return new Map(
      errors.flatMap((error, n): [number, Failed][] =>
        error ? [[requiredAt(indexes, n, 'place of the message'), failedBy(error)]] : [],
      ),
    );
  }

  async #resolve(slice: readonly NewMessage[]): Promise<(address: Address) => Candidates | Failed> {
    const [first, second] = slice;
    if (first && !second) {
      const only = await this.#find(first.address).catch(failedBy);
      return () => only;
    }
    const addresses = slice.map(({ address }) => address);
    return lookUpEach(addresses, (address) => this.#find(address).catch(failedBy));
  }

  async #find(address: Address): Promise<Candidates> {
    const { targets, counts } = this.#deps;
    const found = await targets.candidatesOf(this.#companyId(), address);
    if (!found) throw notFound(address.kind);
    if (!counts.hasRoom()) throw unavailable('mongodb_unavailable');
    return found;
  }

  async #begin(index: number, resolved: ResolvedRequest): Promise<void> {
    const release = await this.#reserve(memoryBytesOf(resolved));
    try {
      // Ordinary messages do not wait.
      const laterMs = fanOutMsOf(resolved);
      if (laterMs > 0) await this.#options.nextSlice?.(laterMs);
    } catch (error) {
      release();
      throw error;
    }
    const insert = this.#deps.store(resolved).catch(failedBy);
    const settle = (result: AcceptResult): void => {
      release();
      this.#results[index] = result;
    };
    this.#inserts.push(
      insert.then((result) => {
        if (result.kind !== 'accepted' || !result.message.isOrdered) settle(result);
        else return this.#whenPublished(result).then(settle);
      }),
    );
  }

  /** The 202 of a message in order says that Kafka has its records: a later message is behind it (docs/contract.md C29.6). */
  async #whenPublished(accepted: AcceptResult & { kind: 'accepted' }): Promise<AcceptResult> {
    if (this.#options.deadline?.aborted) return failedBy(unavailable('deadline_over'));
    const wait = this.#deps.outbox.whenPublished(accepted.message);
    this.#waits.add(wait);
    try {
      await wait.published;
      return accepted;
    } catch (error) {
      if (this.#order) this.#order.isBroken = true;
      return failedBy(error);
    } finally {
      this.#waits.delete(wait);
    }
  }

  /** When the company has no room, the messages of this call that wait for the store make some. */
  async #reserve(bytes: number): Promise<() => void> {
    const { limit } = this.#deps;
    const companyId = this.#companyId();
    const release = limit.tryReserve(companyId, bytes);
    if (release) return release;
    await Promise.all(this.#inserts);
    const again = this.#inserts.length > 0 ? limit.tryReserve(companyId, bytes) : null;
    if (!again) throw overloaded();
    return again;
  }

  #companyId(): string {
    return requiredAt(this.#requests, 0, 'request').companyId;
  }
}

export function failedBy(error: unknown): Failed {
  return { kind: 'failed', error };
}

/** Resolves once the signal is aborted. */
export function whenOver(deadline: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    const end = (): void => {
      resolve(null);
    };
    if (deadline.aborted) end();
    else deadline.addEventListener('abort', end, { once: true });
  });
}

/** Returns one result for each request, in order. The next batch begins after this one has ended. */
async function storeInOrder(
  deps: AcceptDeps,
  batch: readonly ResolvedRequest[],
): Promise<AcceptResult[]> {
  try {
    const results = await storeAndPublish(deps, batch);
    results.forEach(({ kind }, index) => {
      const order = batch[index]?.order;
      if (order && kind === 'failed') order.isBroken = true;
    });
    return results;
  } catch (error) {
    for (const { order } of batch) if (order) order.isBroken = true;
    throw error;
  }
}

async function storeAndPublish(
  deps: AcceptDeps,
  batch: readonly ResolvedRequest[],
): Promise<AcceptResult[]> {
  const built = batch.map((resolved) =>
    resolved.order?.isBroken === true
      ? failedBy(unavailable('mongodb_unavailable'))
      : tryToBuild(deps, resolved),
  );
  const messages = built.flatMap((each) => ('error' in each ? [] : [each.message]));
  const outcomes = messages.length === 0 ? [] : await deps.outbox.store(messages);
  reportRefused(deps, outcomes);
  countStored(deps, messages, outcomes);
  let inserted = 0;
  return built.map((each) => ('error' in each ? each : resultOf(each, outcomes[inserted++])));
}

/** A message that cannot be built must not fail the others of its batch. */
function tryToBuild(deps: AcceptDeps, resolved: ResolvedRequest): Accepted | Failed {
  try {
    return buildMessage(deps, resolved);
  } catch (error) {
    return failedBy(error);
  }
}

function resultOf({ message, shown }: Accepted, outcome: InsertOutcome | undefined): AcceptResult {
  switch (outcome) {
    case 'stored':
      return { kind: 'accepted', message, shown };
    case 'repeated':
      return { kind: 'repeated' };
    case 'refused':
    case 'unconfirmed':
      return failedBy(unavailable('mongodb_unavailable'));
    case undefined:
      throw new ImpossibleError('the store returned fewer outcomes than messages');
  }
}

function countStored(
  { counts }: AcceptDeps,
  messages: readonly Message[],
  outcomes: readonly InsertOutcome[],
): void {
  messages.forEach(({ companyId, createdAtMs, payload }, index) => {
    if (outcomes[index] !== 'stored') return;
    counts.add({ companyId, createdAtMs, payloadBytes: Buffer.byteLength(payload) });
  });
}

function reportRefused({ logger }: AcceptDeps, outcomes: readonly InsertOutcome[]): void {
  const refused = outcomes.filter((outcome) => outcome === 'refused').length;
  if (refused > 0) logger.error({ refused }, 'MongoDB refused messages');
}
