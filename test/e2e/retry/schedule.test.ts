import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../support/api/expect-answers.ts';
import type { ShownDelivery, ShownMessage } from '../../support/api/resources.ts';
import { untilFinal, waitsMs } from '../../support/process/final-deliveries.ts';
import {
  SERVICES,
  startPosthorn,
  type Posthorn,
  type UsualService,
} from '../../support/process/posthorn.ts';
import { createServiceClock, type ServiceClock } from '../../support/process/service-clock.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { readDeliveries, untilMetric, type Sent } from '../../support/process/traffic.ts';
import { useReceiver } from '../../support/process/use-company.ts';
import { failing, startReceiver } from '../../support/receivers/receiver.ts';
import { readTopic } from '../../support/stores/read-topic.ts';
import { CLOCK_MS } from '../../support/time/clocks.ts';
import { eventually } from '../../support/time/eventually.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** docs/contract.md C10.4. */
const DELAYS_MS = [
  ...[5_000, 5 * MINUTE_MS, 30 * MINUTE_MS],
  ...[2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS],
];
/** A long wait is shortened to this much by setting the clock. */
const REST_MS = 5_000;

let clock: ServiceClock;
let posthorn: Posthorn<UsualService>;
const receiver = useReceiver();

beforeAll(async () => {
  clock = createServiceClock('services and database');
  posthorn = await startPosthorn(clock.settings, { processes: SERVICES });
}, 120_000);

afterAll(async () => {
  await posthorn.stop();
  clock.remove();
});

const isExhausted = ({ status }: ShownDelivery): boolean => status === 'exhausted';

async function shown(deliveryId: string): Promise<ShownDelivery> {
  return dataOf(await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`));
}

describe('A parked retry', () => {
  /** Sends a message and waits until its first attempt has failed: the next one is due after 5 s. */
  async function parked() {
    receiver.answerWith(failing(1));
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const { deliveryId } = await posthorn.api.send({ webhookId }, {});
    await eventually('a failed attempt', async () => (await shown(deliveryId)).attemptCount === 1);
    return { webhookId, deliveryId };
  }

  it('is cancelled when it is due if its webhook was disabled, also while no dispatcher runs', async () => {
    const { webhookId, deliveryId } = await parked();
    dataOf(await posthorn.api.put(`/webhooks/${webhookId}`, { disabled: true }));
    await posthorn.dispatcher.stop();
    await eventually('cancelled', async () => (await shown(deliveryId)).status === 'cancelled');
    expect(await shown(deliveryId)).toMatchObject({ reason: 'webhook_disabled', attemptCount: 1 });
    await untilMetric(posthorn.retry, 'posthorn_deliveries_finished_total', 'result="cancelled"');
    posthorn.dispatcher = await posthorn.startProcess('dispatcher');
  }, 120_000);

  it('is made when RETRY_DELAYS no longer has its delay', async () => {
    const { deliveryId } = await parked();
    const stop = () => Promise.all([posthorn.retry.stop(), posthorn.dispatcher.stop()]);
    const start = async (settings: Record<string, string>): Promise<void> => {
      [posthorn.retry, posthorn.dispatcher] = await Promise.all([
        posthorn.startProcess('retry', settings),
        posthorn.startProcess('dispatcher', settings),
      ]);
    };
    await stop();
    const changed = { RETRY_DELAYS: '200ms' };
    await runProgram('deploy/setup/create-topics.ts', [], { ...posthorn.env, ...changed });
    await start(changed);
    await eventually('delivered', async () => (await shown(deliveryId)).status === 'delivered');
    expect((await shown(deliveryId)).attemptCount).toBe(2);
    await stop();
    await start({});
  }, 120_000);
});

describe('A process whose clock is an hour ahead', () => {
  let ahead: ServiceClock;
  let webhookId: string;

  beforeAll(() => {
    ahead = createServiceClock();
    ahead.setAheadBy(HOUR_MS);
  });

  afterAll(() => {
    ahead.remove();
  });

  beforeEach(async () => {
    receiver.answerWith((response) => response.writeHead(200).end());
    ({ webhookId } = await posthorn.api.createTarget(receiver.url));
  });

  async function restart(name: UsualService, settings: Record<string, string>): Promise<void> {
    await posthorn[name].stop();
    posthorn[name] = await posthorn.startProcess(name, settings);
  }

  async function send(
    fields: object,
  ): Promise<{ id: string; createdAt: string; delivery: string }> {
    const message = { webhookId, payload: {}, ...fields };
    const { deliveries, ...sent } = dataOf<ShownMessage>(
      await posthorn.api.post('/webhook-messages', message),
      202,
    );
    return { ...sent, delivery: deliveries[0]?.id ?? '' };
  }

  const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();

  it('releases a message when its time has come by the clock of the database: retry', async () => {
    await restart('retry', ahead.settings);
    const later = await send({ deliverAt: inMs(30 * MINUTE_MS) });
    const soonMs = Date.now() + 4_000;
    const soon = await send({ deliverAt: inMs(4_000) });
    const request = await eventually('the message', () => receiver.of(soon.id)[0]);
    expect(request.atMs).toBeGreaterThan(soonMs - CLOCK_MS);
    // Of one webhook, so of one partition: nothing of the later message was published before this one.
    const published: string[] = [];
    await readTopic(posthorn.env, 'retry-due', ({ value }) => {
      published.push(value);
      return value.includes(soon.id);
    });
    expect(published.filter((value) => value.includes(later.id))).toEqual([]);
    expect(await shown(later.delivery)).toMatchObject({ status: 'pending', waiting: 'time' });
    await restart('retry', {});
  }, 120_000);

  it('makes attempts before their message expires, and signs with the time of the database: dispatcher', async () => {
    await restart('dispatcher', ahead.settings);
    const sent = await send({ expiresAt: inMs(30 * MINUTE_MS) });
    const request = await eventually('the message', () => receiver.of(sent.id)[0]);
    const timestampMs = Number(request.headers['webhook-timestamp']) * 1_000;
    expect(Math.abs(timestampMs - Date.now())).toBeLessThan(MINUTE_MS);
    await restart('dispatcher', {});
  }, 120_000);

  it('stores messages with the time of the database: gateway', async () => {
    await restart('gateway', ahead.settings);
    const { createdAt } = await send({});
    expect(Math.abs(Date.parse(createdAt) - Date.now())).toBeLessThan(MINUTE_MS);
    await restart('gateway', {});
  }, 120_000);
});

describe('The default schedule', () => {
  function attemptMade(deliveryId: string, number: number): Promise<ShownDelivery> {
    // While a record of a delay topic is not due, its reader reads the clock once a minute.
    return eventually(
      `attempt ${number}`,
      async () => {
        const [shown] = await readDeliveries(posthorn.api, [deliveryId]);
        return shown && shown.attemptCount >= number ? shown : null;
      },
      2 * MINUTE_MS,
    );
  }

  /** A new process reads the parked records at once, so that only the first long wait takes a minute. */
  async function restartRetry(): Promise<void> {
    await posthorn.retry.stop();
    posthorn.retry = await posthorn.startProcess('retry');
  }

  it('is seven attempts at 0, 5 s, 5 min, 30 min, 2 h, 5 h and 10 h after the one before, none of them early; a reader that waits looks at the clock once a minute', async () => {
    receiver.answerWith(failing(Infinity, 503));
    const gone = await startReceiver();
    await gone.close();
    const [refused, unreachable] = await Promise.all(
      [receiver.url, gone.url].map(async (url) => {
        const { webhookId } = await posthorn.api.createTarget(url);
        return posthorn.api.send({ webhookId }, { never: 'mind' });
      }),
    );
    if (!refused || !unreachable) throw new Error('not sent');
    for (const [index, delayMs] of DELAYS_MS.entries()) {
      const { attempts, nextAttemptAt } = await attemptMade(refused.deliveryId, index + 1);
      await attemptMade(unreachable.deliveryId, index + 1);
      const dueAtMs = Date.parse(String(nextAttemptAt));
      expect(dueAtMs - Date.parse(attempts[index]?.updatedAt ?? '')).toBe(delayMs);
      if (delayMs > REST_MS) clock.setTo(dueAtMs - REST_MS);
      if (delayMs >= 30 * MINUTE_MS) await restartRetry();
    }
    const deliveries = await untilFinal(posthorn.api, [refused, unreachable], MINUTE_MS);
    expect(deliveries.filter(isExhausted)).toHaveLength(2);
    for (const delivery of deliveries) {
      expect(delivery).toMatchObject({ attemptCount: 7, nextAttemptAt: null });
      expect(delivery.attempts.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7]);
      const earlyMs = waitsMs(delivery).map((ms, index) => ms - (DELAYS_MS[index] ?? 0));
      // The time of the retry service may be some milliseconds ahead of that of the dispatcher.
      expect(earlyMs.filter((ms) => ms < -CLOCK_MS)).toEqual([]);
    }
    const outcomesOf = ({ messageId }: Sent): unknown[] =>
      deliveries
        .filter((each) => each.messageId === messageId)
        .flatMap(({ attempts }) => attempts.map(({ outcome }) => outcome));
    expect(new Set(outcomesOf(refused))).toEqual(new Set(['http_5xx']));
    expect(new Set(outcomesOf(unreachable))).toEqual(new Set(['connect_error']));
    expectSameMessage(refused.messageId);
    const [letter] = await readTopic(posthorn.env, 'exhausted-deliveries', ({ value }) =>
      value.includes(refused.messageId),
    );
    const detail = 'attempt 7 ended http_5xx with status 503';
    expect(letter?.headers).toMatchObject({ reason: 'schedule_exhausted', detail });
  }, 300_000);

  /** Each request has the same id, body and simple signature, and a timestamp of its own. */
  function expectSameMessage(messageId: string): void {
    const requests = receiver.of(messageId);
    expect(requests).toHaveLength(7);
    expect(new Set(requests.map(({ body }) => String(body))).size).toBe(1);
    expect(new Set(requests.map(({ headers }) => headers['x-service-signature'])).size).toBe(1);
    const timestamps = requests.map(({ headers }) => Number(headers['webhook-timestamp']));
    expect(timestamps).toEqual(timestamps.toSorted((one, other) => one - other));
    expect(new Set(timestamps).size).toBe(7);
  }
});
