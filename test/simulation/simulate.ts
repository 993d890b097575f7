import { DAY_MS } from '@posthorn/domain/ids.ts';
import { addWebhook, type Cluster } from './cluster/cluster.ts';
import type { ConsumerObserver } from './consumer/consumer-state.ts';
import { createObservations, type Observations } from './invariants/observations.ts';
import { checkFinalState } from './invariants/check-final-state.ts';
import {
  faultFreePlan,
  ORDERED_FROM,
  orderedPlan,
  type Plan,
  randomPlan,
  REPLAYED_FROM,
  replayedPlan,
} from './world/plan.ts';
import { createRandom } from './deterministic/random.ts';
import { runClient } from './cluster/run-client.ts';
import { runGateway } from './cluster/run-gateway.ts';
import { runDispatchers, runLooks, runReleases, runRetries } from './cluster/run-services.ts';
import { createSimulatedKeys } from './infrastructure/simulated-keys.ts';
import { createSimulatedKafka } from './infrastructure/simulated-kafka.ts';
import { createSimulatedMongo, type SimulatedMongo } from './infrastructure/simulated-mongo.ts';
import { createSimulatedHolds } from './infrastructure/simulated-holds.ts';
import { createSimulatedPublishers } from './infrastructure/simulated-publishers.ts';
import { createFaultInjector } from './world/inject-faults.ts';
import { createVirtualTime } from './deterministic/virtual-time.ts';
import { createDeliveryChecker } from './invariants/check-deliveries.ts';
import { createOrderChecker } from './invariants/check-order.ts';
import { createRecordChecker } from './invariants/check-records.ts';
import { createIds, EPOCH_MS, type World } from './world/world.ts';

export interface SimulationResult {
  seed: number;
  plan: Plan;
  /** The violated invariants in the order in which they were found; empty if all held. */
  violations: string[];
  /** What happened, one line each; empty unless `isTraced`. */
  trace: string[];
  events: number;
  /** Duration of the run in virtual time. */
  virtualMs: number;
  observations: Observations;
  mongo: SimulatedMongo;
}

export interface SimulationOptions {
  /** Injects no faults, and lets every attempt fail. */
  isFaultFree?: boolean;
  isTraced?: boolean;
}

/** Ten times the longest successful run: twelve deliveries of one key that are exhausted one after the other. */
const MAX_EVENTS = 1_000_000;

/** Simulates from the first message until no event is left. The same seed gives the same run. */
export async function simulate(
  seed: number,
  { isFaultFree = false, isTraced = false }: SimulationOptions = {},
): Promise<SimulationResult> {
  const random = createRandom(seed);
  const plan = planOf(seed, random, isFaultFree);
  const violations: string[] = [];
  const trace: string[] = [];
  const world = createWorld(seed, plan, {
    random,
    violations,
    traceLines: isTraced ? trace : null,
  });
  const cluster = createCluster(world);
  runDispatchers(cluster);
  runRetries(cluster);
  runReleases(cluster);
  runLooks(cluster);
  runGateway(cluster);
  runClient(cluster);
  let events = 0;
  await world.time.run(() => violations.length > 0 || (events += 1) > MAX_EVENTS);
  if (events > MAX_EVENTS) violations.push(`the run has not ended after ${MAX_EVENTS} events`);
  if (violations.length === 0) violations.push(...checkFinalState(cluster, cluster.observations));
  const { observations, mongo } = cluster;
  return {
    seed,
    plan,
    violations,
    trace,
    events,
    virtualMs: world.time.nowMs(),
    observations,
    mongo,
  };
}

function planOf(seed: number, random: World['random'], isFaultFree: boolean): Plan {
  if (isFaultFree) return faultFreePlan(random);
  if (seed >= REPLAYED_FROM) return replayedPlan(random);
  return seed >= ORDERED_FROM ? orderedPlan(random) : randomPlan(random);
}

function createWorld(
  seed: number,
  plan: Plan,
  {
    random,
    violations,
    traceLines,
  }: { violations: string[]; traceLines: string[] | null } & Pick<World, 'random'>,
): World {
  const time = createVirtualTime();
  traceLines?.push(`seed ${seed}: ${JSON.stringify(plan)}`);
  const trace = (who: string, what: string): void => {
    traceLines?.push(`${formatTime(time.nowMs())}  ${who.padEnd(16)} ${what}`);
  };
  return {
    plan,
    random,
    time,
    trace,
    newId: createIds(random, () => EPOCH_MS),
    reportViolation(violation) {
      violations.push(violation);
      trace('VIOLATION', violation);
    },
    injectFault: createFaultInjector({ plan, random }),
  };
}

function createCluster(world: World): Cluster {
  const observations = createObservations();
  const kafka = createSimulatedKafka(world);
  const recordChecker = createRecordChecker(world, kafka, observations);
  kafka.onAppend(recordChecker.onAppend);
  const mongo = createSimulatedMongo(createDeliveryChecker(world, observations), {
    beginMs: EPOCH_MS,
    retentionMs: 30 * DAY_MS,
  });
  const { successRates, hasReplay } = world.plan;
  const made = hasReplay ? successRates.slice(0, -1) : successRates;
  for (const index of made.keys()) addWebhook({ world, mongo }, index);
  const publishers = createSimulatedPublishers(world.time);
  const keys = createSimulatedKeys(mongo, world.time);
  const order = createOrderChecker(world, { mongo, kafka }, observations);
  kafka.onAppend((_process, record) => {
    order.onAppend(record);
  });
  const observer: ConsumerObserver = {
    ...recordChecker,
    onCommit(group, commit) {
      recordChecker.onCommit(group, commit);
      order.onCommit(group, commit);
    },
  };
  const holds = createSimulatedHolds(mongo, order.isBlocked);
  return {
    order,
    world,
    kafka,
    mongo,
    publishers,
    keys,
    holds,
    observer,
    observations,
    isAccepting: true,
  };
}

/** Returns hours, minutes, seconds and milliseconds since the start. */
function formatTime(ms: number): string {
  const [hours, rest] = [Math.floor(ms / 3_600_000), ms % 3_600_000];
  return `${String(hours).padStart(2, '0')}:${new Date(rest).toISOString().slice(14, 23)}`;
}
