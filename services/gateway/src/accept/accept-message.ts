import { charsOfMessage, type Message } from '@posthorn/domain/message.ts';
import { ImpossibleError } from '@posthorn/domain/required.ts';
import { createAdaptiveLinger, createBatcher } from '@posthorn/platform/async/batcher.ts';
import { createShares } from '@posthorn/platform/memory/memory-budgets.ts';
import type { InsertOutcome } from '@posthorn/platform/mongo/messages/messages.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import type { Spans } from '@posthorn/platform/service/spans.ts';
import type { MessageCounter } from '@posthorn/platform/mongo/messages/write-stats.ts';
import { ApiError, notFound, overloaded, unavailable } from '../api-error.ts';
import type { TakeTurn } from '../limits/turns.ts';
import type { Outbox } from '../outbox/outbox.ts';
import { MS_PER_RECORD } from '../outbox/publish-budget.ts';
import type { ShownHeaders } from '../history/sent-headers.ts';
import {
  buildMessage,
  type BuildMessageDeps,
  type BuiltMessage,
  cancelDisabledDeliveries,
  type CancelDisabledDeps,
  MS_PER_CANCELLATION,
  type NewMessage,
  type ResolvedRequest,
} from './build-message.ts';
import type { TargetResolver } from './targets.ts';

export type { NewMessage } from './build-message.ts';

interface AcceptDeps extends BuildMessageDeps, CancelDisabledDeps {
  targets: Pick<TargetResolver, 'resolve'>;
  outbox: Pick<Outbox, 'store'>;
  /** Counts a stored message for its company, which pays for it. */
  counts: MessageCounter;
  /** Memory for waiting requests, in bytes. */
  acceptQueueBytes: number;
  /** How long a message waits for others at most, to be stored and published with them. */
  maxLingerMs: number;
  /** Milliseconds of the monotonic clock. */
  monotonicMs: () => number;
}

/** A stored message, and the signature and headers of its oldest webhook. */
export interface Accepted {
  message: Message;
  shown: ShownHeaders;
}

export interface AcceptMessage {
  /**
   * Takes a turn for a message to many webhooks. Returns null when another message has the same idempotency key. Throws
   * ApiError 404 for an unknown app or webhook, 409 for too many targets, 503 when the message was not stored, and what
   * `takeTurn` throws.
   */
  accept: (request: NewMessage, takeTurn?: TakeTurn) => Promise<Accepted | null>;
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
/** A message waits for others where the usual interval between two is at most two thirds of the longest wait. */
const LINGER = { minExpected: 1.5, enough: 16, patience: 3 };
/** With more waiting requests than this, the store cannot keep up; further ones get 503. */
const MAX_WAITING = 5_000;

/** The result of one request of a batch. */
type BatchResult =
  | (Accepted & { kind: 'stored' })
  /** Another message has its idempotency key. */
  | { kind: 'repeated' }
  | { kind: 'not_stored' }
  | NotBuilt;

interface NotBuilt {
  kind: 'not_built';
  error: Error;
}

/**
 * Accept: the majority write of the message is the acceptance. Companies take turns in
 * the batches. The messages are published after the write, which never delays the response.
 */
export function createAcceptMessage(deps: AcceptDeps): AcceptMessage {
  const limit = createAcceptQueueLimit({ requests: MAX_WAITING, bytes: deps.acceptQueueBytes });
  const store = createBatcher<ResolvedRequest, BatchResult>({
    ...GROUP_COMMIT,
    lingerMs: createAdaptiveLinger({ ...LINGER, maxLingerMs: deps.maxLingerMs }, deps.monotonicMs),
    keyOf: ({ request }) => request.companyId,
    costOf: batchCostOf,
    run: (batch) => storeAndPublish(deps, batch),
  });

  const accept = async (request: NewMessage, takeTurn?: TakeTurn): Promise<Accepted | null> => {
    const { companyId, address } = request;
    const found = await deps.targets.resolve(companyId, address);
    if (!found) throw notFound(address.kind);
    const resolved = { ...found, request };
    if (!deps.counts.hasRoom()) throw unavailable('mongodb_unavailable');
    const release = limit.tryReserve(companyId, memoryBytesOf(resolved));
    if (!release) throw overloaded();
    const stored = inTurn(resolved, takeTurn).then(() => store.add(resolved));
    const result = await stored.finally(release);
    switch (result.kind) {
      case 'stored':
        await cancelDisabledDeliveries(deps, result.message);
        return { message: result.message, shown: result.shown };
      case 'repeated':
        return null;
      case 'not_stored':
        throw unavailable('mongodb_unavailable');
      case 'not_built':
        throw result.error;
    }
  };
  return {
    accept,
    hasRoom: (companyId, bytes) => limit.hasRoom(companyId, memoryBytesOfBody(bytes)),
    idle: store.idle,
    usedBytes: limit.usedBytes,
  };
}

/** Ordinary messages do not wait. */
async function inTurn(resolved: ResolvedRequest, takeTurn: TakeTurn | undefined): Promise<void> {
  const laterMs = fanOutMsOf(resolved);
  if (laterMs > 0) await takeTurn?.(laterMs);
}

/** Returns one result for each request, in order. */
async function storeAndPublish(
  deps: AcceptDeps,
  batch: readonly ResolvedRequest[],
): Promise<BatchResult[]> {
  const built = batch.map((resolved) => tryToBuild(deps, resolved));
  const messages = built.flatMap((each) => (each.kind === 'built' ? [each.message] : []));
  const outcomes = messages.length === 0 ? [] : await deps.outbox.store(messages);
  reportRefused(deps, outcomes);
  countStored(deps, messages, outcomes);
  let inserted = 0;
  return built.map((each) => (each.kind === 'built' ? resultOf(each, outcomes[inserted++]) : each));
}

/** A message that cannot be built must not fail the others of its batch. */
function tryToBuild(deps: AcceptDeps, resolved: ResolvedRequest): BuiltMessage | NotBuilt {
  try {
    return buildMessage(deps, resolved);
  } catch (error) {
    return {
      kind: 'not_built',
      error: error instanceof Error ? error : new Error(messageOf(error)),
    };
  }
}

function resultOf(
  { message, shown }: BuiltMessage,
  outcome: InsertOutcome | undefined,
): BatchResult {
  switch (outcome) {
    case 'stored':
      return { kind: 'stored', message, shown };
    case 'repeated':
      return { kind: 'repeated' };
    case 'refused':
    case 'unconfirmed':
      return { kind: 'not_stored' };
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

/**
 * Makes a span of each acceptance. Later spans of the message are below it: the message is stored with the `traceparent`
 * of the span in place of the client's.
 */
export function traceAccept(
  accept: AcceptMessage['accept'],
  spans: Spans,
  nowMs: () => number,
): AcceptMessage['accept'] {
  return async (request, takeTurn) => {
    const span = spans.begin({
      step: 'accept',
      parent: request.traceparent,
      startMs: nowMs(),
      attributes: {
        'posthorn.company.id': request.companyId,
        'posthorn.app.id': request.address.kind === 'app' ? request.address.appId : undefined,
        'posthorn.request.id': request.requestId,
      },
    });
    if (!span) return accept(request, takeTurn);
    try {
      const accepted = await accept({ ...request, traceparent: span.traceparent }, takeTurn);
      const { id, targets } = accepted?.message ?? {};
      const attributes = { 'posthorn.message.id': id, 'posthorn.targets': targets?.length };
      span.end({ endMs: nowMs(), attributes });
      return accepted;
    } catch (error) {
      const failure = error instanceof ApiError ? error.code : 'internal_error';
      span.end({ endMs: nowMs(), failure });
      throw error;
    }
  };
}

/** Bounds the requests that wait for the store. */
interface AcceptQueueLimit {
  /**
   * Returns the function that releases the reservation. Returns null, and reserves nothing, when the
   * company already holds its share.
   */
  tryReserve: (companyId: string, bytes: number) => (() => void) | null;
  /** False when such a reservation would be refused now. */
  hasRoom: (companyId: string, bytes: number) => boolean;
  /** Bytes of all reservations. */
  usedBytes: () => number;
}

interface AcceptQueueBounds {
  requests: number;
  bytes: number;
}

/** Companies share both the number of requests and the bytes (see createShares). */
function createAcceptQueueLimit(bounds: AcceptQueueBounds): AcceptQueueLimit {
  const requests = createShares(bounds.requests);
  const memory = createShares(bounds.bytes);
  const hasRoom = (companyId: string, bytes: number): boolean =>
    requests.hasRoom(companyId, 1) && memory.hasRoom(companyId, bytes);
  return {
    hasRoom,
    tryReserve(companyId, bytes) {
      if (!hasRoom(companyId, bytes)) return null;
      requests.add(companyId, 1);
      memory.add(companyId, bytes);
      return () => {
        requests.remove(companyId, 1);
        memory.remove(companyId, bytes);
      };
    },
    usedBytes: memory.used,
  };
}

const IDS_PER_UNIT = 100;
const CHARS_PER_UNIT = 16_384;

/**
 * Returns the share of a batch, and of its company's turns, that a request takes. An ordinary request
 * costs 1; each 100 ids that are stored with it and each 16 KiB of payload cost 1 more. So a batch of
 * 200 holds 200 ordinary messages, two to 10,000 webhooks each, one to 10,000 disabled ones, whose ids are stored twice,
 * or 12 of 256 KiB: about 3 MiB. To encode 20,000 ids takes 3 ms.
 */
export function batchCostOf({ request, targets, disabledTargets }: ResolvedRequest): number {
  const forIds = Math.floor((targets.length + disabledTargets.size) / IDS_PER_UNIT);
  return 1 + forIds + Math.floor(charsOfMessage(request) / CHARS_PER_UNIT);
}

const WIDE_WEBHOOKS = 100;

/**
 * Returns how long a message to many webhooks keeps the process busy, in milliseconds; 0 for any other one. One to 10,000
 * webhooks is a quarter of a second, and half of one when they are disabled.
 */
export function fanOutMsOf({ targets, disabledTargets }: ResolvedRequest): number {
  if (targets.length < WIDE_WEBHOOKS) return 0;
  return targets.length * MS_PER_RECORD + disabledTargets.size * MS_PER_CANCELLATION;
}

/** Request, response, promises and ids. */
const REQUEST_BYTES = 4_096;
/** The parsed text, and what the driver writes. The body itself is counted where it is read. */
const PAYLOAD_COPIES = 2;
/** The id in the message, and the delivery in the response, as an object and as text. */
const WEBHOOK_BYTES = 300;

/** Estimates the bytes that a request holds in memory until it is answered. */
export function memoryBytesOf({ request, targets }: ResolvedRequest): number {
  return memoryBytesOfBody(charsOfMessage(request)) + targets.length * WEBHOOK_BYTES;
}

/** What such a request holds without its targets, from the length of its body or payload. */
function memoryBytesOfBody(length: number): number {
  return REQUEST_BYTES + length * PAYLOAD_COPIES;
}
