import { delayTiersOf } from '../../../services/retry/src/release/delay-tiers.ts';
import { postponementMs } from '../../../services/retry/src/release/hold-until-due.ts';
import { keepRunning, pause, type Cluster } from './cluster.ts';
import { createDispatcherSteps, type ServiceDeps } from '../parts/simulated-dispatcher.ts';
import { createSend, type MadeRequest } from '../parts/simulated-endpoints.ts';
import { openReader } from '../parts/simulated-reader.ts';
import { createRetrySteps, type RetrySteps } from '../parts/simulated-retry.ts';
import { DELAY_TOPICS, TOPICS, type World } from './world.ts';

const MAX_SWEEP_MS = 8_000;

export function runDispatchers(cluster: Cluster): void {
  for (let index = 1; index <= cluster.world.plan.dispatchers; index += 1) {
    keepRunning(cluster, `dispatcher-${index}`, (deps) => {
      startDispatcher(cluster, deps);
    });
  }
}

function startDispatcher({ world, kafka, watch, evidence }: Cluster, deps: ServiceDeps): void {
  const { process } = deps;
  const note = (made: MadeRequest): void => {
    evidence.made.set(made.attemptId, [...(evidence.made.get(made.attemptId) ?? []), made]);
  };
  openReader(world, kafka, {
    process,
    watch,
    groupId: 'dispatcher',
    window: windowOf(world),
    topics: [TOPICS.messageCreated, TOPICS.retryDue],
    handle: createDispatcherSteps({ ...deps, send: createSend(world, process, note) }),
  });
}

export function runRetries(cluster: Cluster): void {
  for (let index = 1; index <= cluster.world.plan.retries; index += 1) {
    keepRunning(cluster, `retry-${index}`, (deps) => {
      startRetry(cluster, deps);
    });
  }
}

/** Groups and tiers as in start-retry.ts. */
function startRetry(cluster: Cluster, deps: ServiceDeps): void {
  const { world, kafka, watch, publishers } = cluster;
  const { process } = deps;
  const { park, release, sweeper } = createRetrySteps(deps, publishers);
  const common = { process, watch, window: windowOf(world) };
  openReader(world, kafka, {
    ...common,
    groupId: 'park',
    topics: [TOPICS.deliveryFailed],
    handle: park,
  });
  for (const [groupId, topics] of Object.entries(delayTiersOf(DELAY_TOPICS))) {
    openReader(world, kafka, {
      ...common,
      groupId,
      topics,
      handle: release,
      postponeMs: (record) => postponementMs(record, process.nowMs()),
    });
  }
  void sweepOnAndOn(cluster, deps, sweeper);
}

function windowOf({ plan }: World): { high: number; low: number } {
  return { high: plan.window, low: plan.window / 2 };
}

/** As long as there can be anything to sweep; a run must come to its rest. */
async function sweepOnAndOn(
  cluster: Cluster,
  { world, process }: ServiceDeps,
  sweeper: RetrySteps['sweeper'],
): Promise<void> {
  while (process.isAlive() && (cluster.isAccepting || cluster.publishers.hasAny())) {
    await pause(world, 1, MAX_SWEEP_MS);
    await sweeper.tick();
  }
}
