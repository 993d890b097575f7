import {
  hasHeadEnded,
  type Ordering,
  type Sequence,
  type SequenceHead,
} from '@posthorn/domain/delivery/sequence.ts';
import { orderedRecord } from '@posthorn/domain/records/retry-due.ts';
import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import { createReadTogether } from '@posthorn/platform/async/read-together.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import {
  createSequenceStore,
  type Follower,
  type LeavingHead,
  type NewFollower,
  type SequenceStore,
} from '@posthorn/platform/mongo/messages/sequences.ts';
import {
  createWaitingDeliveries,
  type WaitingDeliveries,
} from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';

interface StoredSequencesDeps {
  store: Pick<
    SequenceStore,
    | 'findMany'
    | 'setHeads'
    | 'addFollowers'
    | 'followers'
    | 'lastPosition'
    | 'findHeads'
    | 'remove'
    | 'makeDue'
  >;
  waiting: Pick<WaitingDeliveries, 'endWait'>;
  records: Pick<RecordLog, 'publish'>;
  retryDueTopic: string;
  keepTrying: KeepTrying;
  /** The time of the database. */
  nowMs: () => number;
}

/** The stored part of a sequence, as it was read. */
export interface Stored {
  sequence: Sequence;
  /** The head, when it has not ended and is not pending: it is blocked, or not recorded yet. */
  blocker: SequenceHead | null;
  /** The first pending deliveries that are stored. */
  plan: Follower[];
  /** Nothing is stored behind the plan. */
  isWhole: boolean;
  lastPosition: number;
}

/** What the dispatcher knows that the store may not know yet. */
interface Known {
  /** Everything up to this position has ended. */
  endedTo: number;
  ordering: Ordering | null;
}

/** What a dispatcher reads and writes of sequences, those of many keys together. Every step goes on until it succeeds. */
export interface StoredSequences {
  /** Null without a document. Look-ups of many keys are one read. */
  read: (id: string, known: () => Known) => Promise<Stored | null>;
  setHead: (leaving: LeavingHead) => Promise<unknown>;
  /** Stores followers of one key, each with all before it. */
  addFollowers: (followers: readonly NewFollower[]) => Promise<unknown>;
  /** Publishes the attempts of followers in their order, then ends their wait. */
  publish: (followers: readonly Follower[]) => Promise<void>;
  /** Returns false when the sequence was changed since it was read. */
  remove: (sequence: Sequence) => Promise<boolean>;
  /** Makes the retry service look at a sequence now. */
  makeDue: (id: string) => Promise<void>;
}

/** Deliveries of a backlog that are published ahead. */
const AHEAD = 16;
const HEAD_WRITES = { maxItems: 200, lingerMs: 2, maxInFlight: 2 };
/** One batch after the other: of two followers of a key the first one is stored first, whatever stops in between. */
const FOLLOWER_WRITES = { maxItems: 200, lingerMs: 2, maxInFlight: 1 };

export function openStoredSequences(
  deps: Omit<StoredSequencesDeps, 'store' | 'waiting'> & { db: Database },
): StoredSequences {
  const { db } = deps;
  return createStoredSequences({
    ...deps,
    store: createSequenceStore(db),
    waiting: createWaitingDeliveries(db),
  });
}

export function createStoredSequences(deps: StoredSequencesDeps): StoredSequences {
  const { store, waiting, records, retryDueTopic: topic, keepTrying, nowMs } = deps;
  const read = createReadTogether((ids) =>
    keepTrying('read sequences', () => store.findMany([...ids])),
  );
  const heads = createBatcher<LeavingHead, undefined>({
    ...HEAD_WRITES,
    run: async (leaving) => {
      await keepTrying('store heads of sequences', () => store.setHeads(leaving, nowMs()));
      return leaving.map(() => undefined);
    },
  });
  const followers = createBatcher<NewFollower, undefined>({
    ...FOLLOWER_WRITES,
    run: async (added) => {
      await keepTrying('store followers', () => store.addFollowers(added, nowMs()));
      return added.map(() => undefined);
    },
  });
  return {
    async read(id, known) {
      const sequence = await read(id);
      return sequence
        ? keepTrying('read followers', () => readStored(deps, sequence, known))
        : null;
    },
    setHead: heads.add,
    addFollowers: (added) => Promise.all(added.map(followers.add)),
    async publish(ready) {
      const atMs = nowMs();
      const due = ready.map((each) => ({ topic, ...orderedRecord(each, atMs) }));
      await keepTrying('publish followers', () => records.publish(due));
      await keepTrying('end the wait of followers', () => waiting.endWait(ready, nowMs()));
    },
    remove: (sequence) => keepTrying('delete a sequence', () => store.remove(sequence)),
    makeDue: (id) => keepTrying('make a sequence due', () => store.makeDue([id], nowMs())),
  };
}

async function readStored(
  { store, nowMs }: StoredSequencesDeps,
  sequence: Sequence,
  known: () => Known,
): Promise<Stored> {
  const { head } = sequence;
  const fromPosition = Math.max(head.position, known().endedTo + 1);
  const plan = await store.followers(sequence, fromPosition, AHEAD);
  const isWhole = plan.length < AHEAD;
  const last = isWhole ? plan.at(-1)?.position : await store.lastPosition(sequence);
  // The head is read after the plan: one that is not pending by then has ended for good.
  const found = (await store.findHeads([head], nowMs())).get(head.deliveryId) ?? 'missing';
  const isPlanned = plan.some(({ deliveryId }) => deliveryId === head.deliveryId);
  const isFree = isPlanned || hasHeadEnded(head, found, known().ordering);
  const lastPosition = Math.max(head.position, last ?? -1);
  return { sequence, blocker: isFree ? null : head, plan, isWhole, lastPosition };
}
