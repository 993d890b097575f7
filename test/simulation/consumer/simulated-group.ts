import type { OpenGroups, TestGroup } from '../../support/contract/consumer-group-contract.ts';
import { createRandom } from '../deterministic/random.ts';
import { createVirtualTime } from '../deterministic/virtual-time.ts';
import { createSimulatedKafka, type SimulatedKafka } from '../infrastructure/simulated-kafka.ts';
import { createProcess } from '../infrastructure/simulated-process.ts';
import { faultFreePlan } from '../world/plan.ts';
import { createIds, EPOCH_MS, type World } from '../world/world.ts';
import { startConsumer } from './simulated-consumer.ts';

/** Longer than a join and a commit take. */
const SETTLED_AFTER_MS = 5_000;
const WITHIN_MS = 120_000;
const UNOBSERVED = {
  onHandled: () => undefined,
  onDone: () => undefined,
  onCommit: () => undefined,
  onInterrupted: () => undefined,
};

/** Opens groups of the simulated Kafka, whose time passes only while something is awaited. */
export function openSimulatedGroups(): OpenGroups {
  const world = createQuietWorld();
  const kafka = createSimulatedKafka(world);
  let groups = 0;
  return {
    newGroup: () => Promise.resolve(newGroup(world, kafka, (groups += 1))),
    close: () => Promise.resolve(),
  };
}

function createQuietWorld(): World {
  const random = createRandom(1);
  const time = createVirtualTime();
  return {
    plan: { ...faultFreePlan(random), partitions: 3, gapRate: 0.1 },
    random,
    time,
    newId: createIds(random, () => EPOCH_MS + time.nowMs()),
    trace: () => undefined,
    reportViolation(violation) {
      throw new Error(violation);
    },
    injectFault: () => undefined,
  };
}

function newGroup(world: World, kafka: SimulatedKafka, n: number): TestGroup {
  const topics = [`group-${n}`, `group-${n}-twin`] as const;
  const client = createProcess(world, 'client');
  let members = 0;
  return {
    topics,
    publish: (records) => within(world, () => kafka.publish(client, records)),
    async join(options) {
      const process = createProcess(world, `member-${(members += 1)}`);
      const limits = { pauseAt: 1_000, resumeAt: 500 };
      await within(world, () => {
        const groupId = `${topics[0]}-readers`;
        const own = { groupId, topics, process, observer: UNOBSERVED, inFlightLimits: limits };
        startConsumer(world, kafka, { ...own, ...options });
        return pass(world, SETTLED_AFTER_MS);
      });
      return {
        end: () =>
          within(world, async () => {
            await pass(world, SETTLED_AFTER_MS);
            process.crash();
          }),
      };
    },
    until: (what, holds) => until(world, what, holds),
    nowMs: () => EPOCH_MS + world.time.nowMs(),
  };
}

function pass({ time }: World, ms: number): Promise<void> {
  return new Promise((resolve) => {
    time.after(ms, () => {
      resolve();
    });
  });
}

/** Runs the step in virtual time, in which its timers are those of the simulation. */
async function within(world: World, step: () => Promise<void>): Promise<void> {
  let isDone = false;
  let failure: unknown;
  world.time.after(0, () => {
    step()
      .catch((error: unknown) => (failure = error))
      .finally(() => (isDone = true));
  });
  await until(world, 'the step', () => isDone);
  if (failure) throw failure as Error;
}

async function until({ time }: World, what: string, holds: () => boolean): Promise<void> {
  const endsMs = time.nowMs() + WITHIN_MS;
  // A condition may wait for the clock alone.
  for (let ms = 0; ms <= WITHIN_MS; ms += 100) time.after(ms, () => undefined);
  await time.run(() => holds() || time.nowMs() >= endsMs);
  if (!holds()) throw new Error(`not reached in ${WITHIN_MS} ms of virtual time: ${what}`);
}
