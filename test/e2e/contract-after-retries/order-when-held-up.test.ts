import { describe, expect, it } from '@jest/globals';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import type { ServerResponse } from 'node:http';
import { dataOf, expectNotFound } from '../../support/api/expect-answers.ts';
import type { ShownDelivery } from '../../support/api/resources.ts';
import { duringTests } from '../../support/during-tests.ts';
import { circuitOf } from '../../support/isolation/circuits.ts';
import { ADMIN } from '../../support/process/posthorn.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { numberIn, useOrderedWebhook } from '../../support/process/use-ordered-webhook.ts';
import { countIn } from '../../support/stores/stored-documents.ts';
import { eventually } from '../../support/time/eventually.ts';

/** See docs/contract.md C29. Messages of `order-1` have numbers below 100, those of `order-2` from 101 on. */
describe('The order of a key', () => {
  const { posthorn, make, receiver, begin, id, path, send, arrived, keys } =
    useOrderedWebhook('contract-after-retries');
  const mongo = duringTests(
    () => connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test'),
    ({ close }) => close(),
  );

  const numbers = (from: number, count: number): number[] =>
    Array.from({ length: count }, (_, index) => from + index);
  const arrivedOf = (from: 1 | 101): number[] =>
    arrived().filter((n) => n >= from && n < from + 99);

  /** Sends so many of each key, one after the other. */
  async function sendBoth(each: number): Promise<ShownDelivery[]> {
    const sent: ShownDelivery[] = [];
    for (const n of numbers(1, each)) {
      sent.push(await send(n, 'order-1'), await send(100 + n, 'order-2'));
    }
    return sent;
  }

  /** Waits until so many of each key have arrived, and expects them in their order. */
  async function expectBoth(each: number): Promise<void> {
    const count = (): number => arrivedOf(1).length + arrivedOf(101).length;
    await eventually('all of both keys', () => count() >= 2 * each);
    expect(arrivedOf(1)).toEqual(numbers(1, each));
    expect(arrivedOf(101)).toEqual(numbers(101, each));
  }

  const waitFor = (why: 'hold' | 'order'): Promise<number> =>
    countIn(mongo.db.days.deliveries, { webhookId: id(), waiting: why });

  it('is that of the messages in a replay, whose end does not wait for a key that is blocked', async () => {
    const { id: appId } = await make.app();
    for (const n of [1, 2, 3]) {
      await make.message({ appId, orderingKey: 'order-1', payload: { n } });
      await make.message({ appId, orderingKey: 'order-2', payload: { n: 100 + n } });
    }
    await begin('block', { appId });
    // The first record that a dispatcher finds in a partition may stand in front of what was replayed (decision 68).
    const { deliveries } = await make.message({ webhookId: id(), payload: { n: 0 } });
    await make.deliveryOnce('delivered', deliveries[0]?.id ?? '');
    receiver.answerWith((response, received) => {
      response.writeHead(numberIn(received) === 1 ? 500 : 200).end();
    });
    const since = new Date(Date.now() - 60_000).toISOString();
    const started = await posthorn.api.post(path('/replay-missing'), { since });
    const { id: replayId } = dataOf<{ id: string }>(started, 202);
    const replay = await eventually('the end of the replay', async () => {
      const shown = await posthorn.api.get(`/api/v1/resends/${replayId}`);
      const found = dataOf<{ status: string; done: number }>(shown);
      return found.status === 'done' ? found : null;
    });
    expect(replay.done).toBe(6);
    await send(4, 'order-1');
    const { headDeliveryId } = await eventually('the key is blocked', async () => {
      const [found] = await keys();
      return found?.state === 'blocked' && found.waiting === 3 ? found : null;
    });
    expect(arrivedOf(1)).toEqual([1]);
    expect(arrivedOf(101)).toEqual([101, 102, 103]);
    const body = { orderingKey: 'order-1', deliveryId: headDeliveryId };
    dataOf(await posthorn.api.post(path('/ordering-keys/skip'), body));
    await eventually('the others', () => arrived().includes(4));
    expect(arrivedOf(1)).toEqual([1, 2, 3, 4]);
  });

  it('ends with its webhook, of which no key is left', async () => {
    await begin('block');
    receiver.answerWith((response) => response.writeHead(500).end());
    const sent = await sendBoth(20);
    await eventually('both keys are blocked', async () =>
      (await keys()).every(({ state, waiting }) => state === 'blocked' && waiting === 19),
    );
    dataOf(await posthorn.api.delete(path()));
    for (const { id: deliveryId } of sent.slice(2)) {
      const ended = await make.deliveryOnce('cancelled', deliveryId);
      expect(ended).toMatchObject({ reason: 'webhook_deleted', attemptCount: 0 });
    }
    expectNotFound(await posthorn.api.get(path('/ordering-keys')));
    const sequences = collection(mongo.db, 'sequences');
    await eventually('no key is left', async () => {
      return (await sequences.countDocuments({ webhookId: id() })) === 0;
    });
  });

  it('goes on behind one that expires on hold, although the hold lasts', async () => {
    await begin('block');
    dataOf(await posthorn.api.post(path('/hold'), {}));
    const expiresAt = new Date(Date.now() + 4_000).toISOString();
    const first = await send(1, 'order-1', { expiresAt });
    const second = await send(2, 'order-1');
    const waiting = async (why: string): Promise<boolean> => {
      const shown = await make.delivery(second.id);
      return (shown as ShownDelivery & { waiting: string | null }).waiting === why;
    };
    await eventually('it waits for the first', () => waiting('order'));
    await make.deliveryOnce('cancelled', first.id);
    await eventually('it waits for the hold', () => waiting('hold'));
    dataOf(await posthorn.api.post(path('/resume'), {}), 202);
    await eventually('the second', () => arrived().length > 0);
    expect(arrived()).toEqual([2]);
  });

  it('lasts over a suspension of the company', async () => {
    const EACH = 25;
    const { companyId, env, api } = posthorn;
    // They take 50 s, and the suspension is known within seconds.
    await begin('block', { rateLimitPerSecond: 1 });
    await sendBoth(EACH);
    await runProgram(ADMIN, ['company', 'suspend', companyId], env);
    await eventually('both keys wait', async () => {
      return (await waitFor('hold')) === 2 && (await waitFor('order')) > 0;
    });
    expect(arrived().length).toBeLessThan(2 * EACH);
    await runProgram(ADMIN, ['company', 'resume', companyId], env);
    await eventually('the company may change its limit', async () => {
      return (await api.put(path(), { rateLimitPerSecond: null })).status === 200;
    });
    await expectBoth(EACH);
  });

  it('is kept at the pace of a rate limit', async () => {
    await begin('block', { rateLimitPerSecond: 10 });
    const sent = await sendBoth(12);
    await expectBoth(12);
    for (const { id: deliveryId } of sent) {
      expect(await make.deliveryOnce('delivered', deliveryId)).toMatchObject({ attemptCount: 1 });
    }
  });

  it('is kept over a pause that the endpoint asks for', async () => {
    await begin('block');
    receiver.answerWith((response, received, nth) => {
      if (numberIn(received) === 1 && nth === 1) {
        response.writeHead(429, { 'retry-after': '2' }).end();
      } else response.writeHead(200).end();
    });
    const [first] = await sendBoth(12);
    await expectBoth(12);
    expect(await make.deliveryOnce('delivered', first?.id ?? '')).toMatchObject({
      attemptCount: 2,
    });
  });

  it('is kept while a circuit is open, and when it closes', async () => {
    // Ten failures open it. Those that fail are without a key, and have one attempt.
    await begin('block', { maxAttempts: 1 });
    const probes: ServerResponse[] = [];
    receiver.answerWith((response, received) => {
      if (numberIn(received) === 1) probes.push(response);
      else response.writeHead(numberIn(received) === 0 ? 500 : 200).end();
    });
    for (let sent = 0; sent < 10; sent += 1) {
      await make.message({ webhookId: id(), payload: { n: 0 } });
    }
    const circuit = (): Promise<string> => circuitOf(posthorn.api, id());
    await eventually('the circuit is open', async () => (await circuit()) !== 'closed');
    await sendBoth(12);
    await eventually('its probe', () => probes.length > 0);
    // A busy dispatcher defers nothing: there the other key waits until the probe has timed out, and is the next one.
    await eventually(
      'the other key is deferred, or the next probe',
      async () =>
        arrivedOf(101).length > 0 ||
        (await keys()).some(({ orderingKey }) => orderingKey === 'order-2'),
    );
    for (const probe of probes) probe.writeHead(200).end();
    await eventually('the circuit is closed', async () => (await circuit()) === 'closed');
    await expectBoth(12);
  });
});
