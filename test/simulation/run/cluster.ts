import type { Evidence } from '../judge/evidence.ts';
import type { ReaderWatch } from '../judge/reader-state.ts';
import type { ServiceDeps } from '../parts/simulated-dispatcher.ts';
import type { SimulatedKafka } from '../parts/simulated-kafka.ts';
import type { SimulatedMongo } from '../parts/simulated-mongo.ts';
import { createProcess } from '../parts/simulated-process.ts';
import type { SimulatedPublishers } from '../parts/simulated-publishers.ts';
import type { World } from './world.ts';

/** What the processes of one simulation run on. */
export interface Cluster {
  world: World;
  kafka: SimulatedKafka;
  mongo: SimulatedMongo;
  publishers: SimulatedPublishers;
  watch: ReaderWatch;
  evidence: Evidence;
  /** True until the last gateway has ended. */
  isAccepting: boolean;
}

const MIN_RESTART_MS = 100;
const MAX_RESTART_MS = 30_000;

/** Starts a service, and again some time after each crash. */
export function keepRunning(
  cluster: Cluster,
  name: string,
  start: (deps: ServiceDeps) => void,
  life = 1,
): void {
  const { world } = cluster;
  const deps = connect(cluster, `${name}.${life}`);
  deps.process.onCrash(() => {
    world.time.after(world.random.between(MIN_RESTART_MS, MAX_RESTART_MS), () => {
      keepRunning(cluster, name, start, life + 1);
    });
  });
  world.tell(deps.process.name, 'starts');
  start(deps);
}

/** A process with its own view of the stores. */
export function connect({ world, mongo, kafka }: Cluster, name: string): ServiceDeps {
  const process = createProcess(world, name);
  return { world, process, db: mongo.reachedBy(process), log: kafka.logOf(process) };
}

export function pause({ time, random }: World, lowMs: number, highMs: number): Promise<void> {
  return new Promise((resolve) => void time.after(random.between(lowMs, highMs), resolve));
}
