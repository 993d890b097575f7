import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { eventually } from '../../support/time/eventually.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import { killHard, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { createResources, type Resources } from '../../support/api/resources.ts';
import { insertFailedDeliveries } from '../../support/stores/insert-failed-deliveries.ts';
import { countIn, findIn } from '../../support/stores/stored-documents.ts';

interface Progress {
  id: string;
  status: string;
  total: number;
  succeeded: number;
  failed: number;
}

const FAILED = 800;
const LOST = 20;

describe('A resend of an app', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;
  let mongo: MongoConnection;
  let make: Resources;

  beforeAll(async () => {
    // What an open circuit defers comes back soon, so that all attempts to a dead endpoint are made.
    posthorn = await startPosthorn({ CIRCUIT_RESET_MS: '100', RETRY_DELAYS: '50ms' });
    receiver = await startReceiver();
    mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
    make = createResources(posthorn.api);
  }, 120_000);

  afterAll(async () => {
    await mongo.close();
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  async function webhookWithFailures(appId: string, url: string, count: number): Promise<string> {
    const { id: webhookId } = await make.webhook({ appId, url });
    await insertFailedDeliveries(mongo.db, { companyId: posthorn.companyId, webhookId }, count);
    return webhookId;
  }

  async function start(appId: string): Promise<Progress> {
    const since = new Date(Date.now() - 60_000).toISOString();
    const path = `/api/v1/apps/${appId}/resend-failed`;
    return dataOf<Progress>(await posthorn.api.post(path, { since }), 202);
  }

  const progressOf = async (id: string): Promise<Progress> =>
    dataOf(await posthorn.api.get(`/api/v1/resends/${id}`));

  const once = (what: string, id: string, holds: (progress: Progress) => boolean) =>
    eventually(
      what,
      async () => {
        const progress = await progressOf(id);
        return holds(progress) ? progress : null;
      },
      120_000,
    );

  const isDone = ({ status }: Progress): boolean => status === 'done';

  it('reaches every webhook of the app, also when the gateway is killed in the middle', async () => {
    const { id: appId } = await make.app();
    const { origin } = new URL(receiver.url);
    const webhookIds = await Promise.all(
      ['/first', '/second'].map((path) => webhookWithFailures(appId, origin + path, FAILED)),
    );
    const { id, ...begun } = await start(appId);
    const total = 2 * FAILED;
    expect(begun).toMatchObject({ appId, webhookId: null, status: 'running', total, failed: 0 });
    await once('some were counted', id, ({ succeeded }) => succeeded > 0);
    await killHard(posthorn.gateway);
    expect(receiver.received.length).toBeLessThan(total);
    await posthorn.start('gateway');

    const restarted = await progressOf(id);
    expect(restarted.status).toBe('running');
    expect(restarted.succeeded).toBeGreaterThan(0);
    expect(await once('the end', id, isDone)).toMatchObject({ total, succeeded: total, failed: 0 });

    const { deliveries } = mongo.db.days;
    for (const webhookId of webhookIds) {
      const delivered = { webhookId, status: 'delivered' as const };
      // One attempt each, with the next number, although some pages were read twice because of the kill.
      expect(await countIn(deliveries, { ...delivered, attemptCount: 8 })).toBe(FAILED);
    }
    const first = await findIn(deliveries, { webhookId: String(webhookIds[0]) });
    const shown = await make.delivery(String(first?._id));
    expect(shown.attempts).toMatchObject([{ number: 8, resend: true, outcome: 'success' }]);
    const reached = new Set(receiver.received.map(({ headers }) => headers['webhook-id']));
    expect(reached.size).toBe(total);
  }, 240_000);

  it('reaches the healthy endpoints beside a dead one, shows its progress, and ends', async () => {
    const gone = await startReceiver();
    await gone.close();
    const { id: appId } = await make.app();
    const deadId = await webhookWithFailures(appId, gone.url, LOST);
    const goodIds = await Promise.all(
      [1, 2].map(() => webhookWithFailures(appId, receiver.url, FAILED / 2)),
    );
    const { id } = await start(appId);
    const shown = await once('the good ones', id, ({ succeeded }) => succeeded === FAILED);
    expect(shown).toMatchObject({ total: FAILED + LOST });
    const done = { total: FAILED + LOST, succeeded: FAILED, failed: LOST };
    expect(await once('the end', id, isDone)).toMatchObject(done);
    const { deliveries } = mongo.db.days;
    const delivered = { webhookId: { $in: goodIds }, status: 'delivered' as const };
    expect(await countIn(deliveries, delivered)).toBe(FAILED);
    const lost = { webhookId: deadId, status: 'exhausted' as const };
    expect(await countIn(deliveries, lost)).toBe(LOST);
  }, 240_000);
});
