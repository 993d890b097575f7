import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { eventually } from '../../support/time/eventually.ts';
import { killHard, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { insertFailedDeliveries } from '../../support/stores/insert-failed-deliveries.ts';
import { countIn, findIn } from '../../support/stores/stored-documents.ts';

const FAILED = 1_500;
const EVERY_NTH_FAILS_AGAIN = 10;

interface Progress {
  status: string;
  total: number;
  succeeded: number;
  failed: number;
}

describe('A resend of many failed deliveries', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;
  let mongo: MongoConnection;

  beforeAll(async () => {
    posthorn = await startPosthorn();
    receiver = await startReceiver();
    mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
  }, 120_000);

  afterAll(async () => {
    await mongo.close();
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  async function progressOf(id: string): Promise<Progress> {
    return (await posthorn.api.get(`/api/v1/resends/${id}`)).body.data as Progress;
  }

  it('reaches every one, also when the gateway and the dispatcher are killed meanwhile', async () => {
    const { companyId } = posthorn;
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const since = new Date(Date.now() - 1_000).toISOString();
    const messageIds = await insertFailedDeliveries(mongo.db, { companyId, webhookId }, FAILED);
    receiver.answerWith((response, { body }) => {
      const { n } = JSON.parse(body.toString()) as { n: number };
      response.writeHead(n % EVERY_NTH_FAILS_AGAIN === 0 ? 500 : 200).end();
    });

    const begun = await posthorn.api.post(`/api/v1/webhooks/${webhookId}/resend-failed`, { since });
    expect(begun.status).toBe(202);
    expect(begun.body.data).toMatchObject({ status: 'running', total: FAILED, succeeded: 0 });
    const { id } = begun.body.data as { id: string };
    await eventually('some were sent', () => receiver.received.length > FAILED / 10);
    await Promise.all([killHard(posthorn.gateway), killHard(posthorn.dispatcher)]);
    expect(receiver.received.length).toBeLessThan(FAILED);
    await Promise.all([posthorn.start('gateway'), posthorn.start('dispatcher')]);

    const done = await eventually(
      'the resend is done',
      async () => {
        const progress = await progressOf(id);
        return progress.status === 'done' ? progress : null;
      },
      180_000,
    );
    const failed = FAILED / EVERY_NTH_FAILS_AGAIN;
    expect(done).toMatchObject({ total: FAILED, succeeded: FAILED - failed, failed });
    const reached = new Set(receiver.received.map(({ headers }) => headers['webhook-id']));
    expect(reached).toEqual(new Set(messageIds));

    const { deliveries } = mongo.db.days;
    expect(await countIn(deliveries, { status: 'delivered' })).toBe(FAILED - failed);
    expect(await countIn(deliveries, { status: 'exhausted' })).toBe(failed);
    // One attempt each, with the next number, although some records were read twice because of the kill.
    expect(await countIn(deliveries, { attemptCount: 8 })).toBe(FAILED);
    const first = await findIn(deliveries, { status: 'delivered' });
    expect(first?.attempts).toMatchObject([{ number: 8, trigger: 'resend', outcome: 'success' }]);
  }, 300_000);
});
