import type { Idempotency } from '@posthorn/domain/message.ts';
import { ImpossibleError, requiredAt } from '@posthorn/domain/required.ts';
import {
  CLAIM_LASTS_MS,
  type ClaimedKey,
  type HeldKey,
  KEPT_MS,
  type KeyHolder,
} from '@posthorn/platform/mongo/messages/idempotency-keys.ts';
import type { MessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { startAtZero } from '@posthorn/platform/service/metrics.ts';
import { hash } from 'node:crypto';
import { Counter, type Registry } from 'prom-client';
import { ApiError, keyRunning, toApiError, unavailable } from '../api-error.ts';
import { headersOf, type ShownHeaders } from '../history/sent-headers.ts';
import type { NextSlice } from '../limits/slices.ts';
import type { Outbox } from '../outbox/outbox.ts';
import {
  type Accepted,
  type AcceptMessages,
  type AcceptOptions,
  type AcceptResult,
  type Failed,
  failedBy,
  type NewMessage,
  whenOver,
} from './accept-message.ts';
import type { SealedResponses } from './build-message.ts';

export interface KeyedAcceptDeps {
  accept: AcceptMessages['accept'];
  messages: Pick<MessageQueries, 'findKeyHolders' | 'findAccepted' | 'releaseKeys'>;
  webhooks: Pick<WebhookStore, 'findTarget'>;
  responses: Pick<SealedResponses, 'open'>;
  outbox: Pick<Outbox, 'ensurePublished'>;
  registry: Registry;
}

/** What became of a message. It is a value, whatever it is. */
export type AcceptOutcome =
  | (Accepted & { kind: 'accepted' })
  /** The request is a repeat: `holder` is the message that the first one made. Nothing is stored for it. */
  | { kind: 'replayed'; holder: KeyHolder }
  /**
   * ApiError 409 while the first request with the key is not decided, 422 when that was another one (docs/contract.md,
   * C8); else what `AcceptResult` names.
   */
  | Failed;

/** The one way of a message into Posthorn: single ones, batches, and what is read from elsewhere. */
export interface KeyedAccept {
  /**
   * Accepts messages of one company, each at most once for its idempotency key, and returns what became of each, in their
   * order. Never rejects. `accepted` means that a majority has stored the message. The ids of the accepted ones are in
   * that order; behind the others come messages whose key an earlier message had to leave, because it had expired or was
   * never stored. Of two messages with one key the second is a repeat of the first. A repeat of a message in order is
   * `replayed` once Kafka has its records. In a call in order, nothing behind an `unavailable` one is accepted.
   */
  acceptMany: (
    requests: readonly NewMessage[],
    options?: AcceptOptions,
  ) => Promise<AcceptOutcome[]>;
  acceptOne: AcceptOne;
}

/**
 * Accepts one message, or returns the first response again when the request is a repeat. Throws the error of an outcome
 * that has one, and ApiError 503 when there is no room for the first response.
 */
export type AcceptOne = (
  request: NewMessage,
  options: AcceptOneOptions,
) => Promise<Shown & { isReplayed: boolean }>;

export interface AcceptOneOptions {
  /** See ApiRequest. A message in order may wait for Kafka until then. Absent for one without an ordering key. */
  deadline?: () => AbortSignal;
  /** Counts bytes that are about to be read for this request. Throws ApiError 503 when there is no room. */
  reserve: (bytes: number) => void;
  nextSlice: NextSlice;
}

/** A message with the signature and headers that its response shows. */
type Shown = Accepted & { shown: ShownHeaders };

/**
 * A key is claimed for a message before that is stored (docs/decisions/0012-keys-are-claimed-before-their-message.md), so
 * that a key is looked up only when another message has it, or when the request is refused. A crash between the two
 * writes leaves a claim without a message, which counts for two minutes.
 */
export function createKeyedAccept(deps: KeyedAcceptDeps): KeyedAccept {
  const lookups = new Counter({
    name: 'posthorn_idempotency_lookups_total',
    help: 'Messages sent with an idempotency key, by whether the key was new or repeated.',
    labelNames: ['result'],
    registers: [deps.registry],
  });
  startAtZero(lookups, 'result', ['new', 'repeated']);

  const acceptMany: KeyedAccept['acceptMany'] = async (requests, options = {}) => {
    const ordered = requests.some(mayBeInOrder) ? new OrderedKeys(deps, options) : null;
    const settleKeys = ordered?.settle;
    const results = await deps.accept(requests, ordered ? { ...options, settleKeys } : options);
    const repeats = requests.flatMap((request, index): PossibleRepeat[] => {
      const { idempotency } = request;
      const result = requiredAt(results, index, 'result');
      return idempotency && mayBeRepeat(result) ? [{ ...idempotency, request, index, result }] : [];
    });
    const decided =
      repeats.length === 0 ? NONE_DECIDED : await decideRepeats(deps, repeats, options);
    const found = results.map((result, index) => decided.get(index) ?? outcomeOf(result));
    const confirmed = ordered ? await ordered.confirm(found, requests) : found;
    const outcomes = options.isInOrder ? keepOrder(confirmed) : confirmed;
    countLookups(lookups, requests, outcomes);
    return outcomes;
  };
  return { acceptMany, acceptOne: createAcceptOne(deps, acceptMany) };
}

/**
 * Nothing behind a message that is `unavailable` counts as accepted, so that a repeat of the call keeps the order. What is
 * stored of it is found by its key then.
 */
function keepOrder(outcomes: readonly AcceptOutcome[]): AcceptOutcome[] {
  let broken: Failed | null = null;
  return outcomes.map((outcome) => {
    if (outcome.kind !== 'failed') return broken ?? outcome;
    if (toApiError(outcome.error).code === 'unavailable') broken ??= outcome;
    return outcome;
  });
}

/** Whether the request may be the repeat of one whose message is in order. */
const mayBeInOrder = ({ idempotency, given }: NewMessage): boolean =>
  idempotency !== null && given?.orderingKey !== undefined;

type OrderedKeysDeps = RepeatDeps & Pick<KeyedAcceptDeps, 'outbox'>;

/**
 * The idempotency keys of one call with ordering keys. The message of an earlier request may be stored and not published:
 * its gateway has died, or Kafka was away.
 */
class OrderedKeys {
  readonly #deps: OrderedKeysDeps;
  readonly #options: AcceptOptions;
  /** The ids of the messages whose records Kafka has. */
  readonly #published = new Set<string>();

  constructor(deps: OrderedKeysDeps, options: AcceptOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Frees the keys whose messages have expired or were never stored, and publishes what the others have. */
  readonly settle = async (requests: readonly NewMessage[]): Promise<void> => {
    const keyed = requests.flatMap((request, index): PossibleRepeat[] => {
      const { idempotency } = request;
      return idempotency ? [{ ...idempotency, request, index, result: { kind: 'repeated' } }] : [];
    });
    const freed: HeldKey[] = [];
    for (const [{ request, key }, use] of await readUses(this.#deps, keyed, this.#options)) {
      const found = freedBy(use);
      if (use.kind === 'unknown') throw use.error;
      if (use.kind === 'repeat') await this.#ensure(use.holder, request);
      if (found) freed.push({ key, found });
    }
    if (freed.length === 0) return;
    const { companyId } = requiredAt(requests, 0, 'request');
    await inTime(this.#deps.messages.releaseKeys(companyId, freed), this.#options);
  };

  /** Returns the outcomes of the requests. A repeat has failed when Kafka is not known to have its records. */
  async confirm(
    outcomes: readonly AcceptOutcome[],
    requests: readonly NewMessage[],
  ): Promise<AcceptOutcome[]> {
    const confirmed: AcceptOutcome[] = [];
    for (const [index, outcome] of outcomes.entries()) {
      const request = requiredAt(requests, index, 'request');
      confirmed.push(
        outcome.kind === 'replayed'
          ? await this.#ensure(outcome.holder, request).then(() => outcome, failedBy)
          : outcome,
      );
    }
    return confirmed;
  }

  /** One after the other: they are published in this order. Rejects with ApiError 503. */
  async #ensure({ id, publisherId, isOrdered }: KeyHolder, of: NewMessage): Promise<void> {
    if (!isOrdered || this.#published.has(id)) return;
    const { companyId } = of;
    const wait = this.#deps.outbox.ensurePublished({ id, companyId, publisherId });
    try {
      await inTime(wait.published, this.#options);
      this.#published.add(id);
    } finally {
      wait.giveUp();
    }
  }
}

/** A keyed request that another message may have been accepted for. */
interface PossibleRepeat extends Omit<Idempotency, 'answer'> {
  request: NewMessage;
  /** The place of the request. */
  index: number;
  result: AcceptResult;
}

type RepeatDeps = Pick<KeyedAcceptDeps, 'accept' | 'messages'>;

/** By the place of the request. */
type Decided = ReadonlyMap<number, AcceptOutcome>;

const NONE_DECIDED: Decided = new Map();

/**
 * A key that another message has is looked up, and that of a refused request: a repeat gets its first response although
 * its webhook, say, is deleted now. After any other failure the message of the request itself may be stored.
 */
function mayBeRepeat(result: AcceptResult): boolean {
  return result.kind === 'repeated' || (result.kind === 'failed' && isRefusal(result.error));
}

function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.status < 500;
}

/** Looks up all keys at once. A key that is free after all is released, and its request accepted. */
async function decideRepeats(
  deps: RepeatDeps,
  repeats: readonly PossibleRepeat[],
  options: AcceptOptions,
): Promise<Decided> {
  const decided = new Map<number, AcceptOutcome>();
  const freed: (PossibleRepeat & HeldKey)[] = [];
  for (const [repeat, use] of await readUses(deps, repeats, options)) {
    const found = freedBy(use);
    const isRefused = repeat.result.kind === 'failed';
    if (found && !isRefused) freed.push({ ...repeat, found });
    else if (!isRefused || !(found || use.kind === 'first')) {
      decided.set(repeat.index, outcomeOfUse(use));
    }
  }
  if (freed.length > 0) await acceptFreed(deps, freed, { options, decided });
  return decided;
}

async function acceptFreed(
  deps: RepeatDeps,
  freed: readonly (PossibleRepeat & HeldKey)[],
  { options, decided }: { options: AcceptOptions; decided: Map<number, AcceptOutcome> },
): Promise<void> {
  const requests = freed.map(({ request }) => request);
  const { companyId } = requiredAt(requests, 0, 'request');
  try {
    await inTime(deps.messages.releaseKeys(companyId, freed), options);
  } catch (error) {
    for (const { index } of freed) decided.set(index, { kind: 'failed', error });
    return;
  }
  const results = await deps.accept(requests, options);
  const again = freed.filter(({ index }, n) => {
    const result = requiredAt(results, n, 'result');
    if (result.kind === 'repeated') return true;
    decided.set(index, result);
    return false;
  });
  for (const [{ index }, use] of await readUses(deps, again, options)) {
    decided.set(index, outcomeOfUse(use));
  }
}

type Used = [repeat: PossibleRepeat, use: KeyUse];

async function readUses(
  { messages }: RepeatDeps,
  repeats: readonly PossibleRepeat[],
  options: AcceptOptions,
): Promise<Used[]> {
  const [first] = repeats;
  if (!first) return [];
  const keys = [...new Set(repeats.map(({ key }) => key))];
  const reading = messages.findKeyHolders(first.request.companyId, keys);
  try {
    const holders = await inTime(reading, options);
    return repeats.map((repeat) => {
      return [repeat, keyUseOf(holders.get(repeat.key) ?? null, repeat.bodyHash)];
    });
  } catch (error) {
    return repeats.map((repeat) => [repeat, { kind: 'unknown', error }]);
  }
}

/** Returns what the step resolves to, or throws ApiError 503 at the deadline: what other messages became stays known. */
async function inTime<Result>(step: Promise<Result>, { deadline }: AcceptOptions): Promise<Result> {
  if (!deadline) return step;
  const over = whenOver(deadline).then((): never => {
    throw unavailable('deadline_over');
  });
  return Promise.race([step, over]);
}

function freedBy(use: KeyUse): KeyHolder | ClaimedKey | null {
  if (use.kind === 'expired') return use.holder;
  return use.kind === 'abandoned' ? use.claim : null;
}

function outcomeOfUse(use: KeyUse): AcceptOutcome {
  switch (use.kind) {
    case 'repeat':
      return { kind: 'replayed', holder: use.holder };
    case 'reused':
      return { kind: 'failed', error: new ApiError('idempotency_key_reused') };
    case 'unknown':
      return { kind: 'failed', error: use.error };
    // Another request has the key, but its message is not committed by a majority yet.
    case 'first':
    case 'expired':
    case 'running':
    case 'abandoned':
      return { kind: 'failed', error: keyRunning() };
  }
}

function outcomeOf(result: AcceptResult): AcceptOutcome {
  if (result.kind !== 'repeated') return result;
  throw new ImpossibleError('the store reported a repeated key for a message without one');
}

function countLookups(
  lookups: Counter<'result'>,
  requests: readonly NewMessage[],
  outcomes: readonly AcceptOutcome[],
): void {
  const counts = { new: 0, repeated: 0 };
  outcomes.forEach((outcome, index) => {
    if (!requests[index]?.idempotency) return;
    if (outcome.kind === 'accepted') counts.new += 1;
    else if (outcome.kind === 'replayed' || isAboutKey(outcome.error)) counts.repeated += 1;
  });
  if (counts.new > 0) lookups.inc({ result: 'new' }, counts.new);
  if (counts.repeated > 0) lookups.inc({ result: 'repeated' }, counts.repeated);
}

function isAboutKey(error: unknown): boolean {
  return error instanceof ApiError && error.code.startsWith('idempotency_key_');
}

/**
 * Copies of a first response in memory: the document, its opened response as text and as objects, and the response as it
 * is sent. It may have megabytes: one delivery for each webhook of an app.
 */
const COPIES = 4;

function createAcceptOne(deps: ReadFirstDeps, acceptMany: KeyedAccept['acceptMany']): AcceptOne {
  return async (request, { nextSlice, reserve, deadline }) => {
    // Nothing else waits for longer than MongoDB does.
    const mayWait = request.given?.orderingKey !== undefined;
    const outcomes = await acceptMany([{ ...request, showsHeaders: true }], {
      nextSlice,
      ...(mayWait && { deadline: deadline?.() }),
    });
    const outcome = requiredAt(outcomes, 0, 'outcome');
    switch (outcome.kind) {
      case 'accepted': {
        if (!outcome.shown) throw new ImpossibleError('a single message has no headers to show');
        return { message: outcome.message, shown: outcome.shown, isReplayed: false };
      }
      case 'replayed':
        reserve(outcome.holder.storedBytes * COPIES);
        return { ...(await readFirst(deps, request, outcome.holder.id)), isReplayed: true };
      case 'failed':
        throw outcome.error;
    }
  };
}

type ReadFirstDeps = Pick<KeyedAcceptDeps, 'messages' | 'responses' | 'webhooks'>;

async function readFirst(
  { messages, responses, webhooks }: ReadFirstDeps,
  { companyId, payload }: NewMessage,
  messageId: string,
): Promise<Shown> {
  const found = await messages.findAccepted(companyId, messageId);
  // The message has expired since the look-up.
  if (!found) throw keyRunning();
  // The same bytes as the first request had, also when the stored ones are erased.
  const message = { ...found, payload };
  if (found.idempotency?.answer !== '') return { message, shown: responses.open(message) };
  // The message came in a batch or from Kafka, where no response shows headers.
  const [oldestId] = found.targets;
  const oldest = oldestId === undefined ? null : await webhooks.findTarget(companyId, oldestId);
  return { message, shown: headersOf(message, oldest) };
}

/** What a request with a key means. `holder` is the message that has the key. */
type KeyUse =
  | { kind: 'first' }
  /** The holder is older than a key is kept: its key has to be released for this request. */
  | { kind: 'expired'; holder: KeyHolder }
  /** The same request once more. */
  | { kind: 'repeat'; holder: KeyHolder }
  /** The holder's request had another body. */
  | { kind: 'reused' }
  /** The message of the first request is not stored, or not by a majority yet. */
  | { kind: 'running' }
  /** The message of the first request was never stored: its claim has to be released for this request. */
  | { kind: 'abandoned'; claim: ClaimedKey }
  /** The key could not be looked up. */
  | { kind: 'unknown'; error: unknown };

/**
 * Returns the key of a request as its message has it. Requests with a key of one app have keys of their own: otherwise it
 * could take those that the company will use (docs/contract.md C8.1). No key of a client or a record has a line feed.
 */
export function keyWithin(appId: string | null, key: string | undefined): string | undefined {
  return appId === null || key === undefined ? key : `${appId}\n${key}`;
}

/**
 * Returns what a message keeps of its idempotency key; null without one. Requests with the same hash (SHA-256, hex) have
 * the same bytes.
 */
export function idempotencyOf(key: string | undefined, bytes: Buffer): NewMessage['idempotency'] {
  return key === undefined ? null : { key, bodyHash: hash('sha256', bytes, 'hex') };
}

/** `found` is null when no stored message has the key, and none has claimed it. */
export function keyUseOf(found: KeyHolder | ClaimedKey | null, bodyHash: string): KeyUse {
  if (!found) return { kind: 'first' };
  if (found.kind === 'claimed') {
    const isAbandoned = found.ageMs >= CLAIM_LASTS_MS;
    return isAbandoned ? { kind: 'abandoned', claim: found } : { kind: 'running' };
  }
  const holder = found;
  if (holder.ageMs >= KEPT_MS) return { kind: 'expired', holder };
  return holder.bodyHash === bodyHash ? { kind: 'repeat', holder } : { kind: 'reused' };
}
