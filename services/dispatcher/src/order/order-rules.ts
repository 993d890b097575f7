import {
  type Arrival,
  decideArrival,
  type Placed,
  positionOf,
} from '@posthorn/domain/delivery/sequence.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { Follower } from '@posthorn/platform/mongo/messages/sequences.ts';
import { type EntryState, isUndecided, isWaiting } from './sequence-entry.ts';
import type { Stored } from './stored-sequences.ts';

/*
 * The rules by which a dispatcher keeps the order of one key: which positions its records have, which of them begin, wait or are
 * stored, and which stored deliveries are published next. They change nothing.
 */

/** A record of a sequence in memory, as the rules see it. */
export interface EntryView {
  record: Pick<LogRecord, 'topic' | 'offset'>;
  due: Pick<DueAttempt, 'deliveryId' | 'attemptNumber' | 'position'>;
  isOurs: () => boolean;
  state: EntryState;
  position: number | null;
}

/** A sequence as its dispatcher knows it. */
export interface SequenceView<Entry extends EntryView = EntryView> {
  /** In the order in which they arrived. */
  entries: readonly Entry[];
  /** Null without a document. */
  stored: Stored | null;
  /** Everything up to this position has ended, although it may not be recorded yet. */
  endedTo: number;
}

/**
 * Returns the positions of the records that have none yet. One that is read again has that of its document, or of its attempt
 * under way.
 */
export function findPositions<Entry extends EntryView>(
  { entries, stored, endedTo }: SequenceView<Entry>,
  messageCreatedTopic: string,
): { entry: Entry; position: number }[] {
  const inMemory = entries.flatMap(({ due: { deliveryId }, position }): Placed[] =>
    position === null ? [] : [{ deliveryId, position }],
  );
  const placed = [...inMemory, ...(stored ? [stored.sequence.head, ...stored.plan] : [])];
  const known = new Map(placed.map(({ deliveryId, position }) => [deliveryId, position]));
  let lastPosition = entries.reduce(
    (last, { position }) => Math.max(last, position ?? -1),
    Math.max(endedTo, stored?.lastPosition ?? -1),
  );
  const unplaced = entries.filter(({ position }) => position === null);
  return unplaced.map((entry) => {
    const { due, record } = entry;
    const offset = record.topic === messageCreatedTopic ? record.offset : null;
    const position =
      due.position ?? known.get(due.deliveryId) ?? positionOf({ offset, lastPosition });
    lastPosition = Math.max(lastPosition, position);
    return { entry, position };
  });
}

/** Whether a record may wait in memory, beside so many others of its key. */
type HasRoom<Entry> = (entry: Entry, waitingOfKey: number) => boolean;

/** Decides about the records that wait, in the order of their positions. Every entry must have its position. */
export function decideArrivals<Entry extends EntryView>(
  sequence: SequenceView<Entry>,
  hasRoom: HasRoom<Entry>,
): { entry: Entry; arrival: Arrival }[] {
  const undecided = sequence.entries
    .filter((entry) => isUndecided(entry) && entry.isOurs())
    .toSorted(byPosition);
  const arrivalOf = createArrivalOf(sequence, hasRoom);
  const decided = undecided.map((entry) => ({ entry, arrival: arrivalOf(entry) }));
  if (!decided.some(({ arrival }) => arrival === 'store')) return decided;
  const planned = new Set(sequence.stored?.plan.map(({ deliveryId }) => deliveryId));
  return decided.map(({ entry, arrival }) => {
    // Of two followers of which one is stored, the first one is.
    const isStored = arrival === 'follow' && !planned.has(entry.due.deliveryId);
    return { entry, arrival: isStored ? 'store' : arrival };
  });
}

/** Returns the function that decides about one record by what is in front of it. */
function createArrivalOf<Entry extends EntryView>(
  sequence: SequenceView<Entry>,
  hasRoom: HasRoom<Entry>,
): (entry: Entry) => Arrival {
  const undone = sequence.entries.filter(isUndone);
  const memory = new Set(undone.map(({ due }) => due.deliveryId));
  const inMemoryFrom = undone.reduce((first, each) => {
    const position = positionIn(each);
    return position > sequence.endedTo ? Math.min(first, position) : first;
  }, Infinity);
  const isStored = ({ deliveryId }: Placed): boolean => !memory.has(deliveryId);
  const storedFrom = aheadIn(sequence).find(isStored)?.position ?? Infinity;
  const { isWhole = true, plan = [] } = sequence.stored ?? {};
  const planEnd = isWhole ? Infinity : (plan.at(-1)?.position ?? -1);
  const waitingOfKey = undone.filter(isWaiting).length;
  return (entry) => {
    const position = positionIn(entry);
    return decideArrival({
      isAnyStored: storedFrom < position || planEnd < position,
      isAnyInMemory: inMemoryFrom < position,
      hasRoom: hasRoom(entry, waitingOfKey),
    });
  };
}

/**
 * Returns the record in memory that the store has to name as the head before followers are stored: otherwise the store
 * would go on with the followers behind it. Null when the stored head stands.
 */
export function headInMemory<Entry extends EntryView>(sequence: SequenceView<Entry>): Entry | null {
  const { entries, stored } = sequence;
  if (stored && aheadIn(sequence).length > 0) return null;
  const inWork = entries.filter(({ state }) => state === 'begun' || state === 'failed');
  return inWork.toSorted(byPosition)[0] ?? null;
}

/** What is to be done for the stored deliveries of a sequence. */
type Refill =
  | { kind: 'nothing' }
  /** All that were read have ended, and others may be stored behind them. */
  | { kind: 'read_again' }
  /** None is left, in memory neither. */
  | { kind: 'delete' }
  /** `isReadAgain`: few of those that were read are left, and others may be stored behind them. */
  | { kind: 'publish'; followers: Follower[]; isReadAgain: boolean };

const NOTHING: Refill = { kind: 'nothing' };
/** A backlog is refilled when so many of its deliveries are left in memory. */
const REFILLED_AT = 8;

/**
 * Decides about the stored deliveries: the next ones are published when everything in front of them has ended. `released`
 * are the ids of those whose records were published here and have not come yet.
 */
export function decideRefill(sequence: SequenceView, released: ReadonlySet<string>): Refill {
  const { stored, entries } = sequence;
  if (!stored) return NOTHING;
  const undone = entries.filter(isUndone);
  const [next] = aheadIn(sequence);
  if (!next) {
    if (!stored.isWhole) return { kind: 'read_again' };
    return undone.length === 0 ? { kind: 'delete' } : NOTHING;
  }
  const isInFront = (entry: EntryView): boolean => positionIn(entry) < next.position;
  if (stored.blocker === next || undone.some(isInFront)) return NOTHING;
  // Those behind a retry would come in vain when it fails.
  const isRetry = ({ due }: EntryView): boolean =>
    due.deliveryId === next.deliveryId && due.attemptNumber > 1;
  if (undone.some(isRetry)) return NOTHING;
  const { ready, coming, left } = reachOf(sequence, stored.plan, released);
  if (coming > REFILLED_AT) return NOTHING;
  return {
    kind: 'publish',
    followers: ready,
    isReadAgain: !stored.isWhole && left <= REFILLED_AT,
  };
}

/** Returns the followers to be published, how many others are in memory or on their way, and how many have not ended. */
function reachOf(
  { entries, endedTo }: SequenceView,
  plan: readonly Follower[],
  released: ReadonlySet<string>,
): { ready: Follower[]; coming: number; left: number } {
  const memory = new Set(entries.filter(isUndone).map(({ due }) => due.deliveryId));
  const isComing = ({ deliveryId }: Follower): boolean =>
    memory.has(deliveryId) || released.has(deliveryId);
  const ahead = plan.filter(({ position }) => position > endedTo);
  // One that is neither has its attempts, or is on hold.
  const end = ahead.findIndex((each) => !isComing(each) && each.waiting !== 'order');
  const inReach = end < 0 ? ahead : ahead.slice(0, end);
  const ready = inReach.filter((each) => !isComing(each));
  return { ready, coming: inReach.length - ready.length, left: ahead.length };
}

function isUndone({ state }: EntryView): boolean {
  return state !== 'ended';
}

/** The stored deliveries that have not ended, in their order. */
function aheadIn({ stored, endedTo }: SequenceView): Placed[] {
  if (!stored) return [];
  const all: Placed[] = stored.blocker ? [stored.blocker, ...stored.plan] : stored.plan;
  return all.filter(({ position }) => position > endedTo);
}

function positionIn({ position }: EntryView): number {
  return position ?? Infinity;
}

function byPosition(a: EntryView, b: EntryView): number {
  return positionIn(a) - positionIn(b);
}
