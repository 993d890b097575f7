import { isFinal } from '@posthorn/domain/delivery/delivery.ts';
import { encodeRetryDue } from '@posthorn/domain/records/records.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents.ts';
import { connect, type Cluster } from './cluster.ts';
import type { ServiceDeps } from '../services/simulated-dispatcher.ts';
import { keepTrying } from '../world/silent-logger.ts';
import { TOPICS, type World } from '../world/world.ts';

const TIME_RANGES_MS = [5_000, 60_000, 1_800_000, 36_000_000, 70_000_000] as const;

/** Deletes, disables and enables webhooks, and resends deliveries, at random times. */
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
  for (let rest = plan.resends; rest > 0; rest -= 1) {
    const resendId = `rsnd_${rest}`;
    time.after(randomTime(world), () => void resend(cluster, client, resendId));
  }
}

/** Returns milliseconds. First picks a time range, so that early times are as likely as late ones. */
function randomTime({ random }: World): number {
  return random.below(random.pick(TIME_RANGES_MS));
}

function changeWebhook({ world, mongo, observations }: Cluster): void {
  const webhooks = mongo.collection('webhooks');
  const [id] = world.random.shuffled([...webhooks.keys()]);
  if (id === undefined) return;
  const change = world.random.pick(['deleted', 'disabled', 'disabled', 'enabled']);
  world.trace('client', `${id} ${change}`);
  if (change === 'deleted') webhooks.delete(id);
  else webhooks.set(id, { _id: id, disabled: change === 'disabled' });
  if (change === 'enabled') {
    observations.inactiveSinceMs.delete(id);
    return;
  }
  observations.inactiveWebhooks.add(id);
  if (!observations.inactiveSinceMs.has(id))
    observations.inactiveSinceMs.set(id, world.time.nowMs());
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
  await keepTrying('publish a resend', () =>
    publishResend(records, chosen, { attemptNumber, dueAtMs: process.nowMs() }),
  );
}

function publishResend(
  records: RecordLog,
  { messageId, webhookId, companyId, appId, createdAt }: DeliveryDocument,
  attempt: { attemptNumber: number; dueAtMs: number },
): Promise<void> {
  const ref = { messageId, webhookId, companyId, appId, createdAtMs: createdAt.getTime() };
  const value = encodeRetryDue({ ...ref, ...attempt, trigger: 'resend' });
  return records.publish([{ topic: TOPICS.retryDue, key: webhookId, value }]);
}
