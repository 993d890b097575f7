import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/time/eventually.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import {
  startPosthorn,
  type Posthorn,
  type RunningService,
} from '../../support/process/posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { untilMetric } from '../../support/process/traffic.ts';
import { runProgram } from '../../support/process/service-process.ts';

interface Shown {
  status: string;
  reason: string | null;
  attemptCount: number;
}

describe('A parked retry', () => {
  let posthorn: Posthorn;
  let dispatcher: RunningService;
  let receiver: Receiver;

  beforeAll(async () => {
    posthorn = await startPosthorn({ RETRY_DELAYS: '3s,4s' });
    ({ dispatcher } = posthorn);
    receiver = await startReceiver();
    receiver.answerWith(failing(1));
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  async function shown(deliveryId: string): Promise<Shown> {
    return dataOf<Shown>(await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`));
  }

  /** Sends a message and waits until its first attempt has failed. */
  async function parked() {
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const { deliveryId } = await posthorn.api.send({ webhookId }, {});
    await eventually('a failed attempt', async () => (await shown(deliveryId)).attemptCount === 1);
    return { webhookId, deliveryId };
  }

  it('is cancelled when it is due if its webhook was disabled, also while no dispatcher runs', async () => {
    const { webhookId, deliveryId } = await parked();
    await dispatcher.stop();
    dataOf(await posthorn.api.put(`/webhooks/${webhookId}`, { disabled: true }));
    await eventually('cancelled', async () => (await shown(deliveryId)).status === 'cancelled');
    expect(await shown(deliveryId)).toMatchObject({ reason: 'webhook_disabled', attemptCount: 1 });
    await untilMetric(posthorn.retry, 'posthorn_deliveries_finished_total', 'result="cancelled"');
    dispatcher = await posthorn.start('dispatcher');
  }, 120_000);

  it('is made when RETRY_DELAYS no longer has its delay', async () => {
    const { deliveryId } = await parked();
    await Promise.all([posthorn.retry.stop(), dispatcher.stop()]);
    const changed = { RETRY_DELAYS: '200ms' };
    await runProgram('deploy/setup/create-topics.ts', [], { ...posthorn.env, ...changed });
    await Promise.all([posthorn.start('retry', changed), posthorn.start('dispatcher', changed)]);
    await eventually('delivered', async () => (await shown(deliveryId)).status === 'delivered');
    expect((await shown(deliveryId)).attemptCount).toBe(2);
  }, 120_000);
});
