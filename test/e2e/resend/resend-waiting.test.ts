import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { eventually } from '../../support/time/eventually.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { insertFailedDeliveries } from '../../support/stores/insert-failed-deliveries.ts';
import { countIn } from '../../support/stores/stored-documents.ts';

interface Progress {
  id: string;
  status: string;
  total: number;
  succeeded: number;
  failed: number;
}

/** A gateway works on five resends of a company at once. */
const DEAD = 5;
/** After ten failures the circuit of an endpoint opens, and the others are deferred. */
const FAILED = 60;

describe('Resends to dead endpoints', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;
  let mongo: MongoConnection;
  let waiting: Progress[];

  beforeAll(async () => {
    posthorn = await startPosthorn();
    receiver = await startReceiver();
    mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
    const gone = await startReceiver();
    await gone.close();
    const urls = Array.from({ length: DEAD }, (_, n) => `${new URL(gone.url).origin}/${String(n)}`);
    waiting = await Promise.all(urls.map(resendFailuresOf));
    const { deliveries } = mongo.db.days;
    await eventually(
      'each endpoint has failed',
      async () => (await countIn(deliveries, { attemptCount: 8 })) >= DEAD * 10,
      60_000,
    );
  }, 240_000);

  afterAll(async () => {
    await mongo.close();
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  async function resendFailuresOf(url: string): Promise<Progress> {
    const since = new Date(Date.now() - 60_000).toISOString();
    const { companyId, api } = posthorn;
    const { webhookId } = await api.createTarget(url);
    await insertFailedDeliveries(mongo.db, { companyId, webhookId }, FAILED);
    return dataOf(await api.post(`/api/v1/webhooks/${webhookId}/resend-failed`, { since }), 202);
  }

  const progressOf = async (id: string): Promise<Progress> =>
    dataOf(await posthorn.api.get(`/api/v1/resends/${id}`));

  const ended = (id: string): Promise<Progress> =>
    eventually(
      'the end of the resend',
      async () => {
        const progress = await progressOf(id);
        return progress.status === 'running' ? null : progress;
      },
      90_000,
    );

  it('delay no resend to an endpoint that works', async () => {
    const { id } = await resendFailuresOf(receiver.url);
    const done = { status: 'done', total: FAILED, succeeded: FAILED, failed: 0 };
    expect(await ended(id)).toMatchObject(done);
    const shown = await Promise.all(waiting.map((each) => progressOf(each.id)));
    expect(shown.map(({ status }) => status)).toEqual(waiting.map(() => 'running'));
  }, 120_000);

  it('end when a client aborts them, with the counts of what was sent', async () => {
    const [{ id } = { id: '' }] = waiting;
    dataOf(await posthorn.api.post(`/api/v1/resends/${id}/abort`, {}));
    const { status, total, succeeded, failed } = await ended(id);
    expect([status, total, succeeded]).toEqual(['aborted', FAILED, 0]);
    expect(failed).toBeGreaterThanOrEqual(10);
    expect(failed).toBeLessThan(FAILED);
  }, 120_000);
});
