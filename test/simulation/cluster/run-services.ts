import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { consumerGroups } from '@posthorn/domain/records/topics.ts';
import { pauseMsFor } from '../../../services/retry/src/release-parked.ts';
import { keepRunning, pause, type Cluster } from './cluster.ts';
import { createDispatcherSteps, type ServiceDeps } from '../services/simulated-dispatcher.ts';
import { createSend, type EndpointRequest } from '../services/simulated-endpoints.ts';
import { startConsumer } from '../consumer/simulated-consumer.ts';
import {
  createSimulatedLooks,
  createSimulatedReleases,
  createSimulatedWaitingSweep,
} from '../services/simulated-releases.ts';
import { createRetrySteps, type RetrySteps } from '../services/simulated-retry.ts';
import { DELAY_TOPICS, TOPICS, type World } from '../world/world.ts';

const MAX_SWEEP_MS = 8_000;

export function runDispatchers(cluster: Cluster): void {
  for (let index = 1; index <= cluster.world.plan.dispatchers; index += 1) {
    keepRunning(cluster, `dispatcher-${index}`, (deps) => {
      startDispatcher(cluster, deps);
    });
  }
}

function startDispatcher(
  { world, kafka, observer, observations, order }: Cluster,
  deps: ServiceDeps,
): void {
  const { process } = deps;
  const addRequest = (request: EndpointRequest, due: DueAttempt): void => {
    const { requests } = observations;
    order.onRequest(due);
    requests.set(request.attemptId, [...(requests.get(request.attemptId) ?? []), request]);
  };
  startConsumer(world, kafka, {
    process,
    observer,
    groupId: 'dispatcher',
    inFlightLimits: inFlightLimitsOf(world),
    topics: [TOPICS.messageCreated, TOPICS.retryDue],
    handle: createDispatcherSteps({ ...deps, send: createSend(world, process, addRequest) }),
  });
}

export function runRetries(cluster: Cluster): void {
  for (let index = 1; index <= cluster.world.plan.retries; index += 1) {
    keepRunning(cluster, `retry-${index}`, (deps) => {
      startRetry(cluster, deps);
    });
  }
}

/** Starts the consumers with the groups of start.ts. */
function startRetry(cluster: Cluster, deps: ServiceDeps): void {
  const { world, kafka, observer, publishers } = cluster;
  const { process } = deps;
  const { park, release, sweeper } = createRetrySteps(deps, publishers);
  const common = { process, observer, inFlightLimits: inFlightLimitsOf(world) };
  const groups = consumerGroups('', TOPICS, DELAY_TOPICS);
  startConsumer(world, kafka, { ...common, ...groups.park, handle: park });
  for (const group of [groups.releaseShort, groups.releaseLong]) {
    startConsumer(world, kafka, {
      ...common,
      ...group,
      handle: release,
      delayMs: (record) => pauseMsFor(record, process.nowMs()),
    });
  }
  void runSweeper(cluster, deps, sweeper);
}

/** Starts the processes that release waiting deliveries, which are parts of retry processes. */
export function runReleases(cluster: Cluster): void {
  if (cluster.world.plan.holds === 0) return;
  for (const index of [1, 2]) {
    keepRunning(cluster, `releaser-${index}`, (deps) => {
      const releases = createSimulatedReleases(deps, cluster.holds);
      void runWhileWaiting(cluster, deps, [100, 600_000], releases.tick);
      const sweep = createSimulatedWaitingSweep(deps, cluster.holds, cluster.publishers);
      void runWhileWaiting(cluster, deps, [300_000, 3_000_000], sweep.tick);
    });
  }
}

/** Starts the processes that look at sequences, which are parts of retry processes. */
export function runLooks(cluster: Cluster): void {
  if (cluster.world.plan.ordering === 'none') return;
  for (const index of [1, 2]) {
    keepRunning(cluster, `looker-${index}`, (deps) => {
      const looks = createSimulatedLooks(deps, cluster.publishers);
      void runWhileWaiting(cluster, deps, [500, 1_800_000], looks.tick);
    });
  }
}

/** A message that was not accepted may be stored all the same, and its deliveries begin to wait later. */
const OVER_FOR_MS = 7_200_000;

/** Until everything has been final for two hours. Then the run can end. */
async function runWhileWaiting(
  cluster: Cluster,
  { process }: ServiceDeps,
  [lowMs, highMs]: [number, number],
  tick: () => Promise<void>,
): Promise<void> {
  const { world, holds, observations } = cluster;
  let notOverAtMs = world.time.nowMs();
  while (process.isAlive() && world.time.nowMs() - notOverAtMs < OVER_FOR_MS) {
    await pause(world, lowMs, highMs);
    const isOver = !cluster.isAccepting && holds.isOver(observations.accepted);
    if (!isOver) notOverAtMs = world.time.nowMs();
    await tick();
  }
}

function inFlightLimitsOf({ plan }: World): { pauseAt: number; resumeAt: number } {
  return { pauseAt: plan.maxInFlight, resumeAt: plan.maxInFlight / 2 };
}

/** Sweeps while a publisher may have unpublished messages. Then stops, so that the run can end. */
async function runSweeper(
  cluster: Cluster,
  { world, process }: ServiceDeps,
  sweeper: RetrySteps['sweeper'],
): Promise<void> {
  while (process.isAlive() && (cluster.isAccepting || cluster.publishers.hasAny())) {
    await pause(world, 1, MAX_SWEEP_MS);
    await sweeper.tick();
  }
}
