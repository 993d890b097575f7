import { hash } from 'node:crypto';
import type { Webhook } from '../webhook.ts';
import type { Waiting } from '../waiting.ts';
import type { DeliveryState } from './delivery.ts';

/*
 * The order of the deliveries that go to one webhook with one ordering key (docs/contract.md C29). They are a sequence: its
 * head is the oldest one that has not ended, and all others are followers. Each has a position, by which followers are
 * sorted.
 */

export type Ordering = Webhook['ordering'];

/** A delivery of a sequence. */
export interface Placed {
  deliveryId: string;
  position: number;
}

/**
 * The delivery from which on deliveries of the sequence may not have ended: all before it have. It may have ended itself
 * meanwhile, since a head is stored only when it leaves the memory of its dispatcher.
 */
export interface SequenceHead extends Placed {
  messageId: string;
  /** When MongoDB removes its document, in milliseconds since 1970; absent where its day decides. */
  removeAtMs?: number;
  /** A client goes on behind it although it is exhausted. */
  isSkipped?: true;
}

/** A sequence as it is stored: while a delivery of it is not in the memory of a dispatcher. Times are since 1970. */
export interface Sequence {
  id: string;
  companyId: string;
  webhookId: string;
  orderingKey: string;
  head: SequenceHead;
  /** No delivery of it that has not ended has a lower id: the days before are not read. */
  fromId: string;
  /** How many times it was changed. A change that depends on what was read names it. */
  changes: number;
  /** Its head is exhausted, and keeps its followers. */
  isBlocked: boolean;
  /** When the retry service looks at it next. */
  dueAtMs: number;
  /** The time between the last two looks, which doubles. */
  lookAfterMs: number;
  sinceMs: number;
  updatedAtMs: number;
}

/** 132 bits of the digest: a company can make no two keys of one sequence. */
const DIGEST_CHARS = 22;

/** Returns the id of the sequence. It is derived, so that it is found without a query, whatever characters the key has. */
export function sequenceIdOf(webhookId: string, orderingKey: string): string {
  return `${webhookId}/${hash('sha256', orderingKey, 'base64url').slice(0, DIGEST_CHARS)}`;
}

/** Returns the ids of the sequences in which these deliveries have a place, each once. */
export function sequenceIdsOf(
  deliveries: readonly { webhookId: string; orderingKey?: string }[],
): string[] {
  const ids = deliveries.flatMap(({ webhookId, orderingKey }) =>
    orderingKey === undefined ? [] : [sequenceIdOf(webhookId, orderingKey)],
  );
  return [...new Set(ids)];
}

/**
 * Returns the position of a delivery without a document that arrives behind the one with `lastPosition`. It is the offset of
 * the record in `message-created`, so that two owners of the partition that read it compute the same, and above
 * `lastPosition` in any case: after a replay, and in a topic that was made anew, offsets are too low. A record that a former
 * owner has read gets no other place by that: followers are stored in their order, so what is stored is in front of it, or
 * it has ended.
 */
export function positionOf({
  offset,
  lastPosition,
}: {
  /** Null for a record of another topic. */
  offset: number | null;
  /** -1 before the first one. */
  lastPosition: number;
}): number {
  return Math.max(offset ?? 0, lastPosition + 1);
}

/** The deliveries in front of one that arrives, as far as they have not ended. */
export interface InFront {
  /** One of them is not in the memory of the dispatcher. */
  isAnyStored: boolean;
  isAnyInMemory: boolean;
  /** Whether the delivery may wait in memory: as long as there is room, and for a few seconds. */
  hasRoom: boolean;
}

/** `begin`: its attempt. `follow`: it waits in memory. `store`: it waits as a document. */
export type Arrival = 'begin' | 'follow' | 'store';

/** Decides about a delivery of a sequence whose record is read. */
export function decideArrival({ isAnyStored, isAnyInMemory, hasRoom }: InFront): Arrival {
  if (isAnyStored) return 'store';
  if (!isAnyInMemory) return 'begin';
  return hasRoom ? 'follow' : 'store';
}

/** The head as it is recorded. */
export interface HeadState extends DeliveryState {
  waiting: Waiting | null;
}

/** `missing`: it is not recorded yet. `removed`: it has expired, and its document is gone. */
export type FoundHead = HeadState | 'missing' | 'removed';

/**
 * Whether what stands behind the head may begin. `ordering` is that of the webhook now, null without the webhook: a change
 * of it frees all keys at once.
 */
export function hasHeadEnded(
  head: SequenceHead,
  found: FoundHead,
  ordering: Ordering | null,
): boolean {
  if (found === 'missing') return false;
  if (found === 'removed') return true;
  switch (found.status) {
    case 'pending':
      return false;
    case 'exhausted':
      return ordering !== 'block' || head.isSkipped === true;
    case 'delivered':
    case 'cancelled':
      return true;
  }
}

/**
 * Returns the `ordering` of a webhook as its exhausted deliveries meet it, null without the webhook. A disabled one keeps
 * nothing behind them: what waits goes on, and is cancelled (docs/contract.md C29.9).
 */
export function orderingNow(
  webhook: { ordering: Ordering; disabled: boolean } | undefined,
): Ordering | null {
  if (!webhook) return null;
  return webhook.disabled && webhook.ordering === 'block' ? 'skip' : webhook.ordering;
}

/** A look at a sequence that is due. Times are in milliseconds since 1970. */
export interface Look<Follower> {
  sequence: Pick<Sequence, 'head' | 'lookAfterMs' | 'updatedAtMs'>;
  found: FoundHead;
  ordering: Ordering | null;
  /** The first pending delivery behind the head; null without one. */
  next: Follower | null;
  nowMs: number;
}

export type LookDecision<Follower> =
  /** Its head has its attempts, or waits for something else. */
  | { kind: 'wait'; againAfterMs: number }
  /** Its head waits for its turn, which has come. */
  | { kind: 'release_head' }
  | { kind: 'block'; againAfterMs: number }
  | { kind: 'go_on'; to: Follower }
  | { kind: 'delete' };

const FIRST_LOOK_AFTER_MS = 1_000;
const DAY_MS = 86_400_000;

/**
 * Decides about a sequence that is due because its head may have ended outside a dispatcher. A sequence without followers is
 * deleted only when nothing has changed it for a day: a follower may be on its way to it.
 */
export function decideLook<Follower>(look: Look<Follower>): LookDecision<Follower> {
  const { sequence, found, ordering, next, nowMs } = look;
  const { head, lookAfterMs, updatedAtMs } = sequence;
  if (hasHeadEnded(head, found, ordering)) {
    if (next !== null) return { kind: 'go_on', to: next };
    const isOld = nowMs - updatedAtMs >= DAY_MS;
    return isOld ? { kind: 'delete' } : { kind: 'wait', againAfterMs: DAY_MS };
  }
  if (typeof found === 'object' && found.status === 'exhausted') {
    return { kind: 'block', againAfterMs: DAY_MS };
  }
  if (typeof found === 'object' && found.waiting === 'order') return { kind: 'release_head' };
  const doubledMs = Math.max(FIRST_LOOK_AFTER_MS, 2 * lookAfterMs);
  return { kind: 'wait', againAfterMs: Math.min(DAY_MS, doubledMs) };
}
