import { setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { within } from '../../async/with-timeout.ts';
import { createCommits, type Commits, type SendCommit } from '../positions/commit-offsets.ts';
import type { FetchedBatch } from './fetched-batch.ts';
import type { GroupClient } from './group-client.ts';
import { followMembership, type ConsumeDeps, type Membership } from './join-group.ts';
import { createPartitionWindow } from '../positions/partition-window.ts';
import { createPauses, type Place } from '../positions/pauses.ts';
import type { ConsumeOptions } from '../record-log.ts';
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
  client: GroupClient;
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
    isRunning: false,
    isOver: false,
    assignment: {},
    sendCommit: null,
    fetches: 0,
  };
  const client = deps.openGroupClient(options, {
    ...followMembership(() => life, deps.onFatal),
    onBatch(batch, sendCommit) {
      takeBatch(life, batch, sendCommit);
    },
  });
  const stopTaking = new AbortController();
  // Every record that is being tried again listens to it.
  setMaxListeners(0, stopTaking.signal);
  const intake: Intake = {
    ...options,
    offsets: createPartitionWindow(),
    pauses: createPauses(client),
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
  const life: Life = { ...intake, options, client, commits, state, stopTaking };
  return life;
}

async function start({ client, commits, state }: Life): Promise<void> {
  await client.start();
  if (!state.isOver) commits.start();
}

async function stop(life: Life, drainMs: number): Promise<void> {
  life.stopTaking.abort();
  const deadlineMs = performance.now() + drainMs;
  while (!life.offsets.isQuiet() && performance.now() < deadlineMs) await wait(DRAIN_CHECK_MS);
  await life.commits.stop();
  await leave(life);
}

async function leave({ state, stopTaking, pauses, client, logger }: Life): Promise<void> {
  state.isOver = true;
  state.isRunning = false;
  state.sendCommit = null;
  stopTaking.abort();
  pauses.close();
  await within(client.leave(), LEAVE_TIMEOUT_MS).catch((error: unknown) => {
    logger.warn({ err: error }, 'the consumer did not leave its group, which will miss it soon');
  });
}

function takeBatch(life: Life, batch: FetchedBatch, sendCommit: SendCommit): void {
  const { topic, partition } = batch.batch;
  const { state } = life;
  // A fetch that was on its way may be handed over when the partition is ours no longer.
  if (state.isOver || !state.assignment[topic]?.includes(partition)) return;
  state.sendCommit = sendCommit;
  takeIn(life, batch);
}
