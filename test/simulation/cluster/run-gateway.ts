import { connect, pause, type Cluster } from './cluster.ts';
import type { AcceptOutcome } from '../../../services/gateway/src/accept/idempotency.ts';
import { createSimulatedGateway, type SimulatedGateway } from '../services/simulated-gateway.ts';
import type { SimulatedProcess } from '../infrastructure/simulated-process.ts';

/** Sends the messages of the plan. */
interface Sender {
  /** Sends what is left through this gateway. Resolves when everything has its answer, and never when the gateway crashes. */
  sendThrough: (gateway: SimulatedGateway, process: SimulatedProcess) => Promise<unknown>;
  hasMore: () => boolean;
}

const MAX_RESTART_MS = 20_000;
const NEW_MESSAGE = {
  companyId: 'comp_a',
  eventType: null,
  payload: '{}',
  requestId: 'request-1',
  address: { kind: 'app' as const, appId: 'app_1', eventType: null },
  idempotency: null,
};

/** Accepts the messages of the plan. After a crash, another gateway continues with those that are left. */
export function runGateway(cluster: Cluster): void {
  const { keys } = cluster.world.plan;
  startGateway(cluster, keys > 0 ? createRepeatingSender(cluster) : createSender(cluster));
}

function startGateway(cluster: Cluster, sender: Sender, run = 1): void {
  const { world, publishers, mongo, keys } = cluster;
  const deps = connect(cluster, `gateway.${run}`);
  const { process } = deps;
  const gateway = createSimulatedGateway(deps, {
    publishers,
    keys,
    webhooks: mongo.collection('webhooks'),
  });
  const state = { isDone: false };
  process.onCrash(() => {
    if (state.isDone || !sender.hasMore()) cluster.isAccepting = false;
    else {
      world.time.after(world.random.between(1, MAX_RESTART_MS), () => {
        startGateway(cluster, sender, run + 1);
      });
    }
  });
  const serve = async (): Promise<void> => {
    await gateway.start();
    await sender.sendThrough(gateway, process);
    await pause(world, 0, world.plan.maxGapMs);
    state.isDone = true;
    await gateway.stop().catch(() => undefined);
    process.crash();
  };
  serve().catch(process.crash);
}

/** Returns a client that sends each message once, and repeats no request that failed. */
function createSender({ world, observations: { accepted } }: Cluster): Sender {
  let left = world.plan.messages;
  const sendOne = async (gateway: SimulatedGateway): Promise<void> => {
    const [result] = await gateway.accept([NEW_MESSAGE]);
    if (result?.kind === 'accepted') accepted.push(result.message.id);
  };
  return {
    hasMore: () => left > 0,
    async sendThrough(gateway, process) {
      const answers: Promise<unknown>[] = [];
      while (left > 0 && process.isAlive()) {
        left -= 1;
        answers.push(sendOne(gateway));
        await pause(world, 0, world.plan.maxGapMs);
      }
      await Promise.all(answers);
    },
  };
}

/** As long as a request of the API takes at most. */
const DEADLINE_MS = 10_000;

/**
 * Returns a client that sends the messages of each ordering key one after the other, and repeats every request, with its
 * idempotency key, until it has the answer that its message is accepted.
 */
function createRepeatingSender({ world, observations: { accepted }, order }: Cluster): Sender {
  const { plan, random, time } = world;
  const numbers = Array.from({ length: plan.messages }, (_, n) => n);
  const queues = Map.groupBy(numbers, () => `key-${random.below(plan.keys)}`);
  /** Returns the id of the message once the answer has come. */
  async function sendOne(
    gateway: SimulatedGateway,
    orderingKey: string,
    n: number,
  ): Promise<string | null> {
    const over = new AbortController();
    time.after(DEADLINE_MS, () => {
      over.abort();
    });
    const idempotency = { key: `message-${n}`, bodyHash: `${n}` };
    const request = { ...NEW_MESSAGE, given: { orderingKey }, idempotency };
    const [outcome] = await gateway.acceptMany([request], { deadline: over.signal });
    return random.bool(plan.lossRate) ? null : acceptedIdIn(outcome);
  }
  return {
    hasMore: () => [...queues.values()].some(({ length }) => length > 0),
    sendThrough: (gateway, process) =>
      Promise.all(
        Array.from(queues, async ([orderingKey, left]) => {
          for (let [n] = left; n !== undefined && process.isAlive(); [n] = left) {
            const id = await sendOne(gateway, orderingKey, n);
            if (id !== null && process.isAlive()) {
              left.shift();
              accepted.push(id);
              order.onAccepted(orderingKey, id);
            }
            await pause(world, 0, plan.maxGapMs);
          }
        }),
      ),
  };
}

function acceptedIdIn(outcome: AcceptOutcome | undefined): string | null {
  switch (outcome?.kind) {
    case 'accepted':
      return outcome.message.id;
    case 'replayed':
      return outcome.holder.id;
    case 'failed':
    case undefined:
      return null;
  }
}
