import { isFinal } from '@posthorn/domain/delivery.ts';
import { encodeRetryDue } from '@posthorn/domain/records/records.ts';
import { keepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents.ts';
import { connect, type Cluster } from './cluster.ts';
import type { ServiceDeps } from '../parts/simulated-dispatcher.ts';
import { TOPICS, type World } from './world.ts';

const SPANS_MS = [5_000, 60_000, 1_800_000, 36_000_000, 70_000_000] as const;

/** Deletes, disables and enables webhooks, and asks for deliveries again, at any time. */
export function runClient(cluster: Cluster): void {
  const { world } = cluster;
  const { plan, time } = world;
  // No service of ours: what strikes those spares it.
  const spared = { ...world, strike: () => undefined };
  const client = connect({ ...cluster, world: spared }, 'client');
  for (let rest = plan.webhookChanges; rest > 0; rest -= 1) {
    time.after(momentOf(world), () => {
      changeWebhook(cluster);
    });
  }
  for (let rest = plan.resends; rest > 0; rest -= 1) {
    const resendId = `rsnd_${rest}`;
    time.after(momentOf(world), () => void resend(cluster, client, resendId));
  }
}

/** Early moments are as likely as late ones. */
function momentOf({ random }: World): number {
  return random.below(random.pick(SPANS_MS));
}

function changeWebhook({ world, mongo, evidence }: Cluster): void {
  const webhooks = mongo.of('webhooks');
  const [id] = world.random.shuffled([...webhooks.keys()]);
  if (id === undefined) return;
  const change = world.random.pick(['deleted', 'disabled', 'disabled', 'enabled']);
  world.tell('client', `${id} ${change}`);
  if (change === 'deleted') webhooks.delete(id);
  else webhooks.set(id, { _id: id, disabled: change === 'disabled' });
  if (change === 'enabled') {
    evidence.closedSinceMs.delete(id);
    return;
  }
  evidence.closedWebhooks.add(id);
  if (!evidence.closedSinceMs.has(id)) evidence.closedSinceMs.set(id, world.time.nowMs());
}

/** The mark first, then the record, as in resend-marks.ts and send-resend-page.ts. */
async function resend(
  { world, mongo }: Cluster,
  { process, log }: ServiceDeps,
  resendId: string,
): Promise<void> {
  const deliveries = mongo.of('deliveries');
  // The model keeps documents of any shape; in this collection only the delivery store writes.
  const all = [...deliveries.values()] as unknown as DeliveryDocument[];
  const [chosen] = world.random.shuffled(
    all.filter(({ status, resend: mark }) => isFinal(status) && mark?.state !== 'asked'),
  );
  if (!chosen) return;
  const attemptNumber = chosen.attemptCount + 1;
  const mark = { resendId, attemptNumber, state: 'asked' };
  deliveries.set(chosen._id, { ...deliveries.get(chosen._id), _id: chosen._id, resend: mark });
  world.tell(process.name, `${chosen._id.slice(-6)} asked for again as ${attemptNumber}`);
  await keepTrying(() => publishResend(log, chosen, { attemptNumber, dueAtMs: process.nowMs() }));
}

function publishResend(
  log: RecordLog,
  { messageId, webhookId, companyId, appId, createdAt }: DeliveryDocument,
  asked: { attemptNumber: number; dueAtMs: number },
): Promise<void> {
  const ref = { messageId, webhookId, companyId, appId, createdAtMs: createdAt.getTime() };
  const value = encodeRetryDue({ ...ref, ...asked, trigger: 'resend' });
  return log.publish([{ topic: TOPICS.retryDue, key: webhookId, value }]);
}
