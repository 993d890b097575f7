import { isFinal } from '@posthorn/domain/delivery/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { orderOf } from '@posthorn/domain/message.ts';
import { encodeRetryDue, replayedRecord } from '@posthorn/domain/records/retry-due.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents.ts';
import { createReplayStore } from '@posthorn/platform/mongo/messages/replays.ts';
import { addWebhook, connect, pause, type Cluster } from './cluster.ts';
import type { ServiceDeps } from '../services/simulated-dispatcher.ts';
import { keepTrying } from '../world/silent-logger.ts';
import { EPOCH_MS, TOPICS, type World } from '../world/world.ts';

const COMPANY_ID = 'comp_a';
const TIME_RANGES_MS = [5_000, 60_000, 1_800_000, 36_000_000, 70_000_000] as const;

/** Deletes, disables and enables webhooks, puts them on hold for a while, resends deliveries and replays messages. */
export function runClient(cluster: Cluster): void {
  const { world } = cluster;
  const { plan, time } = world;
  // The client is not a service, so it gets no faults.
  const withoutFaults = { ...world, injectFault: () => undefined };
  const client = connect({ ...cluster, world: withoutFaults }, 'client');
  for (let rest = plan.webhookChanges; rest > 0; rest -= 1) {
    time.after(randomTime(world), () => {
      changeWebhook(cluster);
    });
  }
  for (let rest = plan.holds; rest > 0; rest -= 1) {
    time.after(randomTime(world), () => {
      holdForAWhile(cluster);
    });
  }
  for (let rest = plan.resends; rest > 0; rest -= 1) {
    const resendId = `rsnd_${rest}`;
    time.after(randomTime(world), () => void resend(cluster, client, resendId));
  }
  if (plan.hasReplay) void replay(cluster, client);
}

/**
 * Makes the last webhook after a third of the messages, and replays these to it after another third, as send-replay.ts does:
 * first it adds their deliveries, then it publishes their attempts.
 */
async function replay(cluster: Cluster, { process, db, records }: ServiceDeps): Promise<void> {
  const { world, mongo, observations } = cluster;
  const { messages, successRates } = world.plan;
  await untilAccepted(cluster, messages / 3);
  const webhookId = addWebhook(cluster, successRates.length - 1);
  world.trace(process.name, `${webhookId} made`);
  await untilAccepted(cluster, (2 * messages) / 3);
  const stored = [...mongo.collection('messages').values()];
  const lacking = stored.filter(({ targets }) => !(targets as string[]).includes(webhookId));
  const messageIds = lacking.map(({ _id }) => _id).toSorted();
  for (const id of messageIds) observations.waited.set(deliveryIdOf(id, webhookId), 0);
  const atMs = process.nowMs();
  const replays = createReplayStore(db);
  const added = await keepTrying('add the deliveries of a replay', () =>
    replays.add({ companyId: COMPANY_ID, webhookId, messageIds, createdAtMs: atMs, atMs }),
  );
  const due = added.map((ref) => ({ topic: TOPICS.retryDue, ...replayedRecord(ref, atMs) }));
  await keepTrying('publish a replay', () => records.publish(due));
}

async function untilAccepted(cluster: Cluster, count: number): Promise<void> {
  const { world, observations } = cluster;
  while (cluster.isAccepting && observations.accepted.length < count) await pause(world, 1, 100);
}

/** Returns milliseconds. First picks a time range, so that early times are as likely as late ones. */
function randomTime({ random }: World): number {
  return random.below(random.pick(TIME_RANGES_MS));
}

function changeWebhook(cluster: Cluster): void {
  const { world, mongo, observations } = cluster;
  const webhooks = mongo.collection('webhooks');
  const [id] = world.random.shuffled([...webhooks.keys()]);
  if (id === undefined) return;
  const change = world.random.pick(['deleted', 'disabled', 'disabled', 'enabled']);
  world.trace('client', `${id} ${change}`);
  if (change === 'deleted') webhooks.delete(id);
  else webhooks.set(id, { ...webhooks.get(id), _id: id, disabled: change === 'disabled' });
  cluster.holds.onChanged(id, EPOCH_MS + world.time.nowMs());
  if (change === 'enabled') {
    observations.inactiveSinceMs.delete(id);
    return;
  }
  observations.inactiveWebhooks.add(id);
  if (!observations.inactiveSinceMs.has(id))
    observations.inactiveSinceMs.set(id, world.time.nowMs());
}

const HELD_MS = [100, 5_000, 600_000, 20_000_000] as const;

/** The webhook is resumed however often it was put on hold meanwhile. */
function holdForAWhile({ world, mongo, holds }: Cluster): void {
  const { random, time, trace } = world;
  const [id] = random.shuffled([...mongo.collection('webhooks').keys()]);
  if (id === undefined) return;
  trace('client', `${id} on hold`);
  holds.set(id, true, EPOCH_MS + time.nowMs());
  time.after(random.below(random.pick(HELD_MS)), () => {
    trace('client', `${id} resumed`);
    holds.set(id, false, EPOCH_MS + time.nowMs());
  });
}

/** Sets the mark first, then publishes the record, as in resend-marks.ts and send-resend-page.ts. */
async function resend(
  { world, mongo }: Cluster,
  { process, records }: ServiceDeps,
  resendId: string,
): Promise<void> {
  const deliveries = mongo.collection('deliveries');
  // Simulated collections are untyped. Only the delivery store writes to this one.
  const all = [...deliveries.values()] as unknown as DeliveryDocument[];
  const [chosen] = world.random.shuffled(
    all.filter(({ status, resend: mark }) => isFinal(status) && mark?.state !== 'asked'),
  );
  if (!chosen) return;
  const attemptNumber = chosen.attemptCount + 1;
  const mark = { resendId, attemptNumber, state: 'asked' };
  deliveries.set(chosen._id, { ...deliveries.get(chosen._id), _id: chosen._id, resend: mark });
  world.trace(process.name, `${chosen._id.slice(-6)} resend as attempt ${attemptNumber}`);
  // Dispatchers drop its records while its webhook is on hold, so it is published again, as resend-page.ts does.
  for (;;) {
    await keepTrying('publish a resend', () =>
      publishResend(records, chosen, { attemptNumber, dueAtMs: process.nowMs() }),
    );
    await pause(world, 600_000, 1_200_000);
    const stored = deliveries.get(chosen._id) as DeliveryDocument | undefined;
    if (stored?.resend?.resendId !== resendId || stored.resend.state !== 'asked') return;
  }
}

function publishResend(
  records: RecordLog,
  { messageId, webhookId, companyId, appId, createdAt, orderingKey, position }: DeliveryDocument,
  attempt: { attemptNumber: number; dueAtMs: number },
): Promise<void> {
  const place = orderOf({
    ...(orderingKey !== undefined && { orderingKey }),
    ...(position !== undefined && { position }),
  });
  const ref = {
    messageId,
    webhookId,
    companyId,
    appId,
    createdAtMs: createdAt.getTime(),
    ...place,
  };
  const value = encodeRetryDue({ ...ref, ...attempt, trigger: 'resend' });
  return records.publish([{ topic: TOPICS.retryDue, key: webhookId, value }]);
}
