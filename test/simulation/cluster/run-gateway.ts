import { connect, pause, type Cluster } from './cluster.ts';
import { createSimulatedGateway, type SimulatedGateway } from '../services/simulated-gateway.ts';
import type { World } from '../world/world.ts';
import type { SimulatedProcess } from '../infrastructure/simulated-process.ts';

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
export function runGateway(cluster: Cluster, left = cluster.world.plan.messages, run = 1): void {
  const { world, publishers, mongo } = cluster;
  const deps = connect(cluster, `gateway.${run}`);
  const gateway = createSimulatedGateway(deps, publishers, mongo.collection('webhooks'));
  const state = { left, isDone: false };
  deps.process.onCrash(() => {
    if (state.isDone || state.left === 0) cluster.isAccepting = false;
    else {
      world.time.after(world.random.between(1, MAX_RESTART_MS), () => {
        runGateway(cluster, state.left, run + 1);
      });
    }
  });
  acceptAll(cluster, deps.process, gateway, state).catch(() => {
    deps.process.crash();
  });
}

async function acceptAll(
  { world, observations }: Cluster,
  process: SimulatedProcess,
  gateway: SimulatedGateway,
  state: { left: number; isDone: boolean },
): Promise<void> {
  await gateway.start();
  const answers: Promise<unknown>[] = [];
  while (state.left > 0 && process.isAlive()) {
    state.left -= 1;
    answers.push(acceptOne(world, gateway, observations.accepted));
    await pause(world, 0, world.plan.maxGapMs);
  }
  await Promise.all(answers);
  await pause(world, 0, world.plan.maxGapMs);
  state.isDone = true;
  await gateway.stop().catch(() => undefined);
  process.crash();
}

/** Accepts one message. The simulated client does not repeat a failed request. */
async function acceptOne(
  { plan, random }: World,
  gateway: SimulatedGateway,
  accepted: string[],
): Promise<void> {
  const given = plan.keys > 0 && { given: { orderingKey: `key-${random.below(plan.keys)}` } };
  const [result] = await gateway.accept([{ ...NEW_MESSAGE, ...given }]);
  if (result?.kind === 'accepted') accepted.push(result.message.id);
}
