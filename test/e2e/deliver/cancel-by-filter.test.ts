import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import { createResources, type Resources } from '../../support/api/resources.ts';
import { killHard, type Posthorn, startPosthorn } from '../../support/process/posthorn.ts';
import { failing, type Receiver, startReceiver } from '../../support/receivers/receiver.ts';
import { countIn } from '../../support/stores/stored-documents.ts';
import { metricOf } from '../../support/process/traffic.ts';
import { eventually } from '../../support/time/eventually.ts';

interface ShownCancellation {
  id: string;
  status: string;
  cancelled: number;
}

/** `WEBHOOKS=4000` for the size of the promise, which takes ten minutes. */
const WEBHOOKS = Number(process.env.WEBHOOKS ?? 400);
const MESSAGES = 5;
const AT_ONCE = 20;

let posthorn: Posthorn<'retry'>;
let receiver: Receiver;
let mongo: MongoConnection;
let make: Resources;
let appId: string;

beforeAll(async () => {
  // What has failed once waits an hour, and what its open circuit defers comes back meanwhile.
  const settings = { RETRY_DELAYS: '1h', CIRCUIT_RESET_MS: '500' };
  posthorn = await startPosthorn(settings, { processes: ['retry'] });
  receiver = await startReceiver();
  receiver.answerWith(failing(99_999));
  mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
  make = createResources(posthorn.api);
  ({ id: appId } = await make.app());
  for (let made = 0; made < WEBHOOKS; made += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => webhook(made + n)));
  }
}, 600_000);

afterAll(async () => {
  await mongo.close();
  await receiver.close();
  await posthorn.stop();
}, 60_000);

const webhook = (n: number): Promise<unknown> =>
  make.webhook({ appId, url: `${receiver.url}/${String(n)}` });

async function send(eventType: string, count: number): Promise<void> {
  const messages = Array<object>(count).fill({ appId, eventType, payload: { n: 1 } });
  dataOf(await posthorn.api.post('/api/v1/webhook-messages/batch', { messages }), 202);
}

const progressOf = async (id: string): Promise<ShownCancellation> =>
  dataOf(await posthorn.api.get(`/api/v1/cancellations/${id}`));

const requestsOf = (eventType: string): number =>
  receiver.received.filter(({ headers }) => headers['webhook-event-type'] === eventType).length;

const stored = (filter: object): Promise<number> => countIn(mongo.db.days.deliveries, filter);

describe(`A cancellation by filter of deliveries to ${String(WEBHOOKS)} webhooks`, () => {
  it('cancels parked, deferred and new ones within five seconds, though the retry process is killed and its lease of 15 s has to end', async () => {
    await send('order.wrong', MESSAGES);
    await send('order.right', 1);
    // Some have failed and are parked, and others are deferred before their first attempt or were not read yet.
    await eventually('the first attempts', () => requestsOf('order.wrong') > WEBHOOKS / 2, 120_000);
    const filter = { appId, eventType: 'order.wrong' };
    const query = new URLSearchParams(filter).toString();
    const total = WEBHOOKS * MESSAGES;
    expect(dataOf(await posthorn.api.get(`/api/v1/deliveries/cancel/estimate?${query}`))).toEqual({
      deliveries: total,
      webhooks: WEBHOOKS,
      isComplete: true,
    });
    // Dispatchers stop by themselves: the work stores nothing as cancelled meanwhile.
    await killHard(posthorn.retry);
    const asked = await posthorn.api.post('/api/v1/deliveries/cancel', filter);
    const { id } = dataOf<ShownCancellation>(asked, 202);
    const stopsAt = new Date(Date.now() + 5_000);
    await eventually('five seconds', () => Date.now() > stopsAt.getTime());
    expect(requestsOf('order.wrong')).toBeLessThan(total);
    posthorn.retry = await posthorn.startProcess('retry');
    await eventually('the work', async () => (await progressOf(id)).cancelled > 0, 60_000);
    // It goes on until ten seconds after the request, for what is recorded late: most starts are over sooner.
    await killHard(posthorn.retry);
    posthorn.retry = await posthorn.startProcess('retry');
    await eventually('the end', async () => (await progressOf(id)).status === 'done', 120_000);
    const cancelled = { status: 'cancelled', reason: 'cancelled_by_client' };
    expect(await stored(cancelled)).toBe(total);
    expect((await progressOf(id)).cancelled).toBeLessThanOrEqual(total);
    const late = { ...cancelled, 'attempts.startedAt': { $gt: stopsAt } };
    expect(await stored(late)).toBe(0);
    // None is under way any more, whose success would deliver it.
    await eventually('no attempt under way', async () => {
      return (await metricOf(posthorn.dispatcher, 'posthorn_deliveries_in_flight')) === 0;
    });
    await eventually('the others', () => requestsOf('order.right') >= WEBHOOKS, 120_000);
    expect(await stored({ status: 'cancelled' })).toBe(total);
  }, 600_000);

  it('lets a resend by the same filter send each once', async () => {
    receiver.answerWith((response) => response.writeHead(200).end());
    receiver.received.length = 0;
    const filter = { eventType: 'order.wrong', status: 'cancelled' };
    const asked = await posthorn.api.post('/api/v1/deliveries/resend', filter);
    const { id, ...begun } = dataOf<{ id: string; total: number }>(asked, 202);
    const total = WEBHOOKS * MESSAGES;
    expect(begun.total).toBe(total);
    const ended = await eventually(
      'the end of the resend',
      async () => {
        const shown = await posthorn.api.get(`/api/v1/resends/${id}`);
        const resend = dataOf<{ status: string }>(shown);
        return resend.status === 'done' ? resend : null;
      },
      480_000,
    );
    expect(ended).toMatchObject({ total, succeeded: total, failed: 0 });
    expect(requestsOf('order.wrong')).toBe(total);
  }, 600_000);
});
