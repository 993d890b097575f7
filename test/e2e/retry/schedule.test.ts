import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/time/eventually.ts';
import { untilFinal, waitsMs } from '../../support/process/final-deliveries.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { readTopic } from '../../support/stores/read-topic.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import type { ShownDelivery } from '../../support/api/resources.ts';
import { createServiceClock, type ServiceClock } from '../../support/process/service-clock.ts';
import { readDeliveries } from '../../support/process/traffic.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** docs/contract.md C10.4. */
const DELAYS_MS = [
  ...[5_000, 5 * MINUTE_MS, 30 * MINUTE_MS],
  ...[2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS],
];
/** A long wait is shortened to this much by setting the clock. */
const REST_MS = 5_000;

describe('The default schedule', () => {
  let clock: ServiceClock;
  let posthorn: Posthorn;
  let receiver: Receiver;

  beforeAll(async () => {
    clock = createServiceClock();
    posthorn = await startPosthorn(clock.settings);
    receiver = await startReceiver();
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
    clock.remove();
  }, 60_000);

  function attemptMade(deliveryId: string, number: number): Promise<ShownDelivery> {
    // While a record of a delay topic is not due, its reader reads the clock once a minute.
    return eventually(
      `attempt ${number}`,
      async () => {
        const [shown] = await readDeliveries(posthorn.api, [deliveryId]);
        return shown && shown.attemptCount >= number ? shown : null;
      },
      90_000,
    );
  }

  /** A new process reads the parked records at once, so that only the first long wait takes a minute. */
  async function restartRetry(): Promise<void> {
    await posthorn.retry.stop();
    posthorn.retry = await posthorn.start('retry');
  }

  it('is seven attempts at 0, 5 s, 5 min, 30 min, 2 h, 5 h and 10 h after the one before, none of them early', async () => {
    receiver.answerWith(failing(Infinity));
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const sent = await posthorn.api.send({ webhookId }, { never: 'mind' });
    for (const [index, delayMs] of DELAYS_MS.entries()) {
      const { attempts, nextAttemptAt } = await attemptMade(sent.deliveryId, index + 1);
      const dueAtMs = Date.parse(String(nextAttemptAt));
      expect(dueAtMs - Date.parse(attempts[index]?.updatedAt ?? '')).toBe(delayMs);
      if (delayMs > REST_MS) clock.setTo(dueAtMs - REST_MS);
      if (delayMs >= 30 * MINUTE_MS) await restartRetry();
    }
    const [delivery] = await untilFinal(posthorn.api, [sent], 30_000);
    expect(delivery).toMatchObject({ status: 'exhausted', attemptCount: 7, nextAttemptAt: null });
    expect(delivery?.attempts.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    const earlyMs = delivery && waitsMs(delivery).map((ms, index) => ms - (DELAYS_MS[index] ?? 0));
    expect(earlyMs?.filter((ms) => ms < 0)).toEqual([]);
    expect(receiver.of(sent.messageId)).toHaveLength(7);
    const [letter] = await readTopic(posthorn.env, 'dead-letters', ({ value }) =>
      value.includes(sent.messageId),
    );
    expect(letter?.headers).toMatchObject({ reason: 'schedule_exhausted' });
  }, 300_000);
});
