import { type Finding, finding } from './evidence.ts';

/**
 * How many requests and responses the receiver had counted by then: the one clock of the audit, which has no two events at
 * once. Infinity for never.
 */
export type Moment = number;

/** A delivery with an ordering key, as the receiver saw it and as the API shows it. */
export interface OrderedDelivery {
  /** Shown in findings. */
  name: string;
  /** When its first request had come. */
  firstAt: Moment;
  /** When the receiver began to answer with a success for the first time. */
  succeededAt: Moment;
  /** The earliest moment at which it can have been exhausted: a final status, or the failure of its last attempt. */
  refusedAt: Moment;
  /** When the round asked to cancel it. */
  cancelledAt: Moment;
  /** When the round asked to go on behind it. */
  skippedAt: Moment;
  /** It came under two ids, or under another one than the 202 had. */
  hasTwoIds: boolean;
  /** How it has ended without a success by the record of the API; null when it is pending or delivered. */
  ended: { status: 'exhausted' | 'cancelled'; deliveryId: string } | null;
}

/** An ordering key as the API lists it. */
export interface ListedKey {
  state: 'blocked' | 'waiting';
  headDeliveryId: string;
  /** How many deliveries are behind the head, counted up to 1,000. */
  waiting: number;
}

/** All accepted deliveries of one key to one webhook, in the order that C29.2 defines. */
export interface OrderedKey {
  name: string;
  ordering: 'block' | 'skip';
  deliveries: Iterable<OrderedDelivery>;
  /** Null for a key that the API does not list. */
  listed: ListedKey | null;
}

export const EARLY = 'an attempt before its turn';
export const INVERTED = 'a first success out of order';
export const LOST_IN_ORDER = 'lost with an ordering key';

/** By the text of the finding. */
type Found = Map<string, string[]>;

/**
 * Checks the order of deliveries (docs/contract.md C29.3, C29.4) and the list of keys (C29.10) once nothing is under way
 * any more. Only a delivery behind an exhausted one of a webhook with `block` may wait then, and such keys are listed with
 * their head, and no others.
 */
export function auditOrder(keys: Iterable<OrderedKey>): Finding[] {
  const found: Found = new Map();
  for (const key of keys) auditKey(key, found);
  return [...found].flatMap(([what, examples]) => finding(what, examples));
}

/** What stands in front of a delivery. */
interface InFront {
  /** When the last of them had ended. */
  endedAt: Moment;
  /** When the last first success of them came. */
  succeededAt: Moment;
  /** The first one that keeps what is behind it. */
  blocker: OrderedDelivery | null;
  /** How many wait behind that. */
  waiting: number;
}

function auditKey(key: OrderedKey, found: Found): void {
  const { ordering, deliveries } = key;
  const front: InFront = { endedAt: 0, succeededAt: 0, blocker: null, waiting: 0 };
  for (const each of deliveries) {
    auditDelivery(each, front, found);
    if (front.blocker && isOpen(each)) front.waiting += 1;
    if (keepsOthers(each, ordering)) front.blocker ??= each;
    front.endedAt = Math.max(front.endedAt, endOf(each, ordering));
    if (each.succeededAt !== Infinity) {
      front.succeededAt = Math.max(front.succeededAt, each.succeededAt);
    }
  }
  auditListed(key, front, found);
}

function auditDelivery(each: OrderedDelivery, front: InFront, found: Found): void {
  if (each.firstAt < front.endedAt) note(found, EARLY, each.name);
  if (each.succeededAt < front.succeededAt) note(found, INVERTED, each.name);
  if (each.hasTwoIds) note(found, 'one message under two ids', each.name);
  if (!front.blocker && isLost(each)) note(found, LOST_IN_ORDER, each.name);
}

/** Neither received nor ended as it may: exhausted without refusals, or cancelled by nobody. */
function isLost({ ended, succeededAt, refusedAt, cancelledAt }: OrderedDelivery): boolean {
  switch (ended?.status) {
    case undefined:
      return succeededAt === Infinity;
    case 'exhausted':
      return refusedAt === Infinity;
    case 'cancelled':
      return cancelledAt === Infinity;
  }
}

function isOpen({ ended, succeededAt }: OrderedDelivery): boolean {
  return ended === null && succeededAt === Infinity;
}

function keepsOthers({ ended, skippedAt }: OrderedDelivery, ordering: OrderedKey['ordering']) {
  return ordering === 'block' && ended?.status === 'exhausted' && skippedAt === Infinity;
}

/** The earliest moment at which what is behind the delivery may begin. Its success counts, recorded or not (C29.3). */
function endOf(
  { ended, succeededAt, refusedAt, cancelledAt, skippedAt }: OrderedDelivery,
  ordering: OrderedKey['ordering'],
): Moment {
  switch (ended?.status) {
    case undefined:
      return succeededAt;
    case 'exhausted':
      return Math.min(succeededAt, ordering === 'block' ? skippedAt : refusedAt);
    case 'cancelled':
      return Math.min(succeededAt, cancelledAt);
  }
}

/** docs/contract.md C29.10. */
const COUNTED = 1_000;

function auditListed(
  { name, listed }: OrderedKey,
  { blocker, waiting }: InFront,
  found: Found,
): void {
  const shown = listed
    ? `listed as ${listed.state} at ${listed.headDeliveryId} with ${listed.waiting} behind it`
    : 'not listed';
  if (!blocker) {
    if (listed) note(found, 'a listed key that is not blocked', `${name}: ${shown}`);
    return;
  }
  const wanted = `blocked at ${blocker.ended?.deliveryId ?? ''} with ${Math.min(COUNTED, waiting)} behind it`;
  if (shown !== `listed as ${wanted}`) {
    note(found, 'a blocked key that is not listed', `${name}: ${wanted}, but ${shown}`);
  }
}

function note(found: Found, what: string, example: string): void {
  const examples = found.get(what);
  if (examples) examples.push(example);
  else found.set(what, [example]);
}
