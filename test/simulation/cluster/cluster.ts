import type { OrderChecker } from '../invariants/check-order.ts';
import type { Observations } from '../invariants/observations.ts';
import type { ConsumerObserver } from '../consumer/consumer-state.ts';
import type { ServiceDeps } from '../services/simulated-dispatcher.ts';
import type { SimulatedKafka } from '../infrastructure/simulated-kafka.ts';
import type { SimulatedKeys } from '../infrastructure/simulated-keys.ts';
import type { SimulatedMongo } from '../infrastructure/simulated-mongo.ts';
import { createProcess } from '../infrastructure/simulated-process.ts';
import type { SimulatedPublishers } from '../infrastructure/simulated-publishers.ts';
import type { SimulatedHolds } from '../infrastructure/simulated-holds.ts';
import type { World } from '../world/world.ts';

/** The simulated stores and Kafka of one simulation, and what is observed of them. */
export interface Cluster {
  world: World;
  kafka: SimulatedKafka;
  mongo: SimulatedMongo;
  publishers: SimulatedPublishers;
  keys: SimulatedKeys;
  holds: SimulatedHolds;
  observer: ConsumerObserver;
  order: OrderChecker;
  observations: Observations;
  /** True until the last gateway has stopped. */
  isAccepting: boolean;
}

const MIN_RESTART_MS = 100;
const MAX_RESTART_MS = 30_000;

/** Starts a service, and restarts it some time after each crash. */
export function keepRunning(
  cluster: Cluster,
  name: string,
  start: (deps: ServiceDeps) => void,
  run = 1,
): void {
  const { world } = cluster;
  const deps = connect(cluster, `${name}.${run}`);
  deps.process.onCrash(() => {
    world.time.after(world.random.between(MIN_RESTART_MS, MAX_RESTART_MS), () => {
      keepRunning(cluster, name, start, run + 1);
    });
  });
  world.trace(deps.process.name, 'starts');
  start(deps);
}

/** Makes the webhook whose attempts succeed as often as the plan says at this place. Returns its id. */
export function addWebhook(
  { world, mongo }: Pick<Cluster, 'world' | 'mongo'>,
  index: number,
): string {
  const id = `wh_${String(index).padStart(26, '0')}`;
  const { ordering } = world.plan;
  mongo.collection('webhooks').set(id, { _id: id, disabled: false, ordering });
  return id;
}

/** Creates a process and connects it to the stores. */
export function connect({ world, mongo, kafka }: Cluster, name: string): ServiceDeps {
  const process = createProcess(world, name);
  return { world, process, db: mongo.connectedTo(process), records: kafka.recordLogOf(process) };
}

/** Waits a random time in virtual milliseconds. */
export function pause({ time, random }: World, lowMs: number, highMs: number): Promise<void> {
  return new Promise((resolve) => void time.after(random.between(lowMs, highMs), resolve));
}
