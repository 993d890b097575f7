import { type Cluster } from './run/cluster.ts';
import { createEvidence, type Evidence } from './judge/evidence.ts';
import { judgeEnd } from './judge/judge-end.ts';
import { calmPlan, drawPlan, type Plan } from './run/plan.ts';
import { createRandom } from './chance/random.ts';
import { runClient } from './run/run-client.ts';
import { runGateway } from './run/run-gateway.ts';
import { runDispatchers, runRetries } from './run/run-services.ts';
import { createSimulatedKafka } from './parts/simulated-kafka.ts';
import { createSimulatedMongo, type SimulatedMongo } from './parts/simulated-mongo.ts';
import { createSimulatedPublishers } from './parts/simulated-publishers.ts';
import { createStrike } from './run/strike.ts';
import { createVirtualTime } from './chance/virtual-time.ts';
import { watchDeliveries } from './judge/watch-deliveries.ts';
import { watchRecords } from './judge/watch-records.ts';
import { createIds, EPOCH_MS, type World } from './run/world.ts';

export interface SimulationResult {
  seed: number;
  plan: Plan;
  /** What did not hold, in the order in which it was seen; empty when all did. */
  violations: string[];
  /** Lines of what happened; empty unless asked for. */
  trace: string[];
  events: number;
  /** How long it was for the processes. */
  virtualMs: number;
  evidence: Evidence;
  mongo: SimulatedMongo;
}

export interface SimulationOptions {
  /** No faults, and endpoints that always fail. */
  isCalm?: boolean;
  isTraced?: boolean;
}

/** Ten times the longest good run. */
const MAX_EVENTS = 100_000;

/** One run from the first message to the moment in which nothing is left to happen. The same seed, the same run. */
export async function simulate(
  seed: number,
  { isCalm = false, isTraced = false }: SimulationOptions = {},
): Promise<SimulationResult> {
  const random = createRandom(seed);
  const plan = isCalm ? calmPlan(random) : drawPlan(random);
  const violations: string[] = [];
  const trace: string[] = [];
  const world = createWorld(seed, plan, { random, violations, trace: isTraced ? trace : null });
  const cluster = createCluster(world);
  runDispatchers(cluster);
  runRetries(cluster);
  runGateway(cluster);
  runClient(cluster);
  let events = 0;
  await world.time.run(() => violations.length > 0 || (events += 1) > MAX_EVENTS);
  if (events > MAX_EVENTS) violations.push(`no rest after ${MAX_EVENTS} events`);
  if (violations.length === 0) violations.push(...judgeEnd(cluster, cluster.evidence));
  const { evidence, mongo } = cluster;
  return { seed, plan, violations, trace, events, virtualMs: world.time.nowMs(), evidence, mongo };
}

function createWorld(
  seed: number,
  plan: Plan,
  {
    random,
    violations,
    trace,
  }: { violations: string[]; trace: string[] | null } & Pick<World, 'random'>,
): World {
  const time = createVirtualTime();
  trace?.push(`seed ${seed}: ${JSON.stringify(plan)}`);
  const tell = (who: string, what: string): void => {
    trace?.push(`${clockFace(time.nowMs())}  ${who.padEnd(16)} ${what}`);
  };
  return {
    plan,
    random,
    time,
    tell,
    newId: createIds(random, () => EPOCH_MS),
    fail(violation) {
      violations.push(violation);
      tell('VIOLATION', violation);
    },
    strike: createStrike({ plan, random }),
  };
}

function createCluster(world: World): Cluster {
  const evidence = createEvidence();
  const kafka = createSimulatedKafka(world);
  const watch = watchRecords(world, kafka, evidence);
  kafka.onAppend(watch.onAppend);
  const mongo = createSimulatedMongo(watchDeliveries(world, evidence));
  for (const index of world.plan.successRates.keys()) {
    const id = `wh_${String(index).padStart(26, '0')}`;
    mongo.of('webhooks').set(id, { _id: id, disabled: false });
  }
  const publishers = createSimulatedPublishers(world);
  return { world, kafka, mongo, publishers, watch, evidence, isAccepting: true };
}

/** Hours, minutes, seconds and milliseconds since the beginning. */
function clockFace(ms: number): string {
  const [hours, rest] = [Math.floor(ms / 3_600_000), ms % 3_600_000];
  return `${String(hours).padStart(2, '0')}:${new Date(rest).toISOString().slice(14, 23)}`;
}
