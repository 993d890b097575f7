import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/time/eventually.ts';
import { dataOf, expectNotFound } from '../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import {
  failing,
  startReceiver,
  type Answer,
  type Receiver,
} from '../../support/receivers/receiver.ts';
import {
  createResources,
  type Resources,
  type ShownDelivery,
} from '../../support/api/resources.ts';

interface ShownHealth {
  circuit: string;
  successRate: number | null;
  latencyMs: { p50: number | null; p95: number | null };
  backlog: number;
}

const OK: Answer = (response) => response.writeHead(200).end('ok');

let posthorn: OwnCompany;
let receiver: Receiver;
let make: Resources;

beforeAll(async () => {
  posthorn = await joinShared('contract');
  receiver = await startReceiver();
  make = createResources(posthorn.api);
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

describe('Webhooks · POST /api/v1/webhooks/{id}/test', () => {
  it('sends a small test message and returns its delivery', async () => {
    receiver.answerWith(OK);
    const { id: webhookId } = await make.webhook({ url: receiver.url, eventTypes: ['x'] });
    const answer = await posthorn.api.post(`/api/v1/webhooks/${webhookId}/test`, undefined);
    const { id, messageId } = dataOf<ShownDelivery>(answer, answer.status);
    expect([200, 202]).toContain(answer.status);
    await make.deliveryOnce('delivered', id);
    const [got] = receiver.of(messageId);
    expect(JSON.parse(String(got?.body))).toBeInstanceOf(Object);
    expectNotFound(await posthorn.api.post('/api/v1/webhooks/wh_unknown/test', undefined));
  });
});

describe('Webhooks · GET /api/v1/webhooks/{id}/health', () => {
  const health = async (id: string): Promise<ShownHealth> =>
    dataOf(await posthorn.api.get(`/api/v1/webhooks/${id}/health`));
  const healthOnce = (what: string, id: string, check: (shown: ShownHealth) => boolean) =>
    eventually(what, async () => {
      const shown = await health(id);
      return check(shown) ? shown : null;
    });

  it('has no rate, no latency and no backlog for a webhook without messages', async () => {
    const { id } = await make.webhook({ url: receiver.url });
    expect(await health(id)).toEqual({
      circuit: 'closed',
      concurrency: { now: 16, floor: 1, ceiling: 1_000 },
      ratePerSecond: null,
      heldUntil: null,
      probeAt: null,
      lastAttemptAt: null,
      successRate: null,
      backlog: 0,
      latencyMs: { p50: null, p95: null },
    });
  });

  it('shows the share of attempts that succeeded and how long they took', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    receiver.answerWith(OK);
    for (let n = 0; n < 3; n += 1) await make.message({ webhookId });
    await healthOnce('three successes', webhookId, ({ backlog }) => backlog === 0);
    receiver.answerWith(failing(99));
    await make.message({ webhookId });
    const shown = await healthOnce(
      'one failure',
      webhookId,
      ({ successRate }) => successRate !== 1,
    );
    expect(shown).toMatchObject({ circuit: 'closed', successRate: 0.75, backlog: 1 });
    const { p50, p95 } = shown.latencyMs;
    expect(Number(p50)).toBeGreaterThanOrEqual(0);
    expect(Number(p95)).toBeGreaterThanOrEqual(Number(p50));
  });

  it('returns 404 for an unknown id', async () => {
    expectNotFound(await posthorn.api.get(`/api/v1/webhooks/wh_${'0'.repeat(26)}/health`));
  });
});
