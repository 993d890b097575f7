import type { Consumer, EachBatchPayload } from 'kafkajs';
import { setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { within } from '../within.ts';
import { createCommits, type Commits } from './commit-offsets.ts';
import {
  createConsumer,
  followMembership,
  type ConsumeDeps,
  type Membership,
} from './join-group.ts';
import { createPartitionWindow } from './partition-window.ts';
import { createPauses, type Place } from './pauses.ts';
import type { ConsumeOptions } from './record-log.ts';
import { goOn, takeIn, type Intake } from './take-in.ts';

/** One life of a consumer, with offsets and pauses of its own; a new life shares nothing with it. */
export interface Reader {
  /** Joins the group and reads; rejects when Kafka cannot be reached. */
  start: () => Promise<void>;
  /** Takes no further records, waits up to `drainMs` for those under work, commits, leaves. */
  stop: (drainMs: number) => Promise<void>;
  /** Leaves without waiting and without a commit; what is under work ends unheard. */
  retire: () => Promise<void>;
  isRunning: () => boolean;
  assigned: () => Place[];
  /** True where nothing can move just now: the head is not due, or the partition waits for room. */
  isWaiting: (place: Place) => boolean;
  /** How often the fetch loop has gone round. */
  fetches: () => number;
}

interface Life extends Intake {
  options: ConsumeOptions;
  consumer: Consumer;
  commits: Commits;
  state: Membership;
  stopTaking: AbortController;
}

const DRAIN_CHECK_MS = 20;
/** A rebalance that is under way ends within the session's ten seconds or is not worth the wait. */
const LEAVE_TIMEOUT_MS = 8_000;

export function createReader(deps: ConsumeDeps, options: ConsumeOptions): Reader {
  const life = createLife(deps, options);
  const { state, offsets, pauses, window } = life;
  followMembership(life, deps.onFatal);
  return {
    start: () => start(life),
    stop: (drainMs) => stop(life, drainMs),
    async retire() {
      life.commits.cancel();
      await leave(life);
    },
    isRunning: () => state.isRunning,
    assigned: () =>
      Object.entries(state.assignment).flatMap(([topic, partitions]) =>
        partitions.map((partition) => ({ topic, partition })),
      ),
    isWaiting(place) {
      if (offsets.begunIn(place.topic, place.partition) > 0) return false;
      if (pauses.isPostponed(place)) return true;
      return pauses.isHeldBack(place) && offsets.inFlightIn(place.topic) > window.low;
    },
    fetches: () => state.fetches,
  };
}

function createLife(deps: ConsumeDeps, options: ConsumeOptions): Life {
  const state: Membership = {
    ...{ isRunning: false, isOver: false, assignment: {}, sendCommit: null, fetches: 0 },
  };
  const consumer = createConsumer(deps, options, () => !state.isOver);
  const stopTaking = new AbortController();
  // Every record that is being tried again listens to it.
  setMaxListeners(0, stopTaking.signal);
  const intake: Intake = {
    ...options,
    offsets: createPartitionWindow(),
    pauses: createPauses(consumer),
    logger: deps.logger.child({ groupId: options.groupId }),
    metrics: deps.metrics,
    draining: stopTaking.signal,
  };
  const commits = createCommits({
    ...intake,
    sender: () => state.sendCommit,
    onCommitted() {
      for (const topic of options.topics) goOn(intake, topic);
    },
  });
  return { ...intake, options, consumer, commits, state, stopTaking };
}

async function start(life: Life): Promise<void> {
  const { consumer, options, state } = life;
  await consumer.connect();
  await consumer.subscribe({ topics: [...options.topics], fromBeginning: true });
  if (state.isOver) return consumer.disconnect();
  life.commits.start();
  await consumer.run({
    autoCommit: false,
    // Offsets are resolved one by one, so that a postponed record is fetched again.
    eachBatchAutoResolve: false,
    eachBatch: (payload) => {
      takeBatch(life, payload);
      return Promise.resolve();
    },
  });
}

async function stop(life: Life, drainMs: number): Promise<void> {
  life.stopTaking.abort();
  const deadlineMs = performance.now() + drainMs;
  while (!life.offsets.isQuiet() && performance.now() < deadlineMs) await wait(DRAIN_CHECK_MS);
  await life.commits.stop();
  await leave(life);
}

async function leave({ state, stopTaking, pauses, consumer, logger }: Life): Promise<void> {
  state.isOver = true;
  state.isRunning = false;
  state.sendCommit = null;
  stopTaking.abort();
  pauses.close();
  await within(consumer.disconnect(), LEAVE_TIMEOUT_MS).catch((error: unknown) => {
    logger.warn({ err: error }, 'the consumer did not leave its group, which will miss it soon');
  });
}

function takeBatch(life: Life, payload: EachBatchPayload): void {
  const { topic, partition } = payload.batch;
  const { state } = life;
  // A fetch that was on its way may be handed over when the partition is ours no longer.
  if (state.isOver || !state.assignment[topic]?.includes(partition)) return;
  // consumer.commitOffsets tries again with the generation of after a rebalance, and so commits
  // partitions that are another member's by then; this one is refused, and our next one is right.
  state.sendCommit = (offsets) => payload.commitOffsetsIfNecessary(offsets);
  takeIn(life, payload);
}
