import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/platform/kafka/partition-of.ts';
import type { ApiClient } from '../../support/api/api-client.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { eventually } from '../../support/time/eventually.ts';
import {
  LOCAL,
  startPosthorn,
  type Posthorn,
  type RunningService,
} from '../../support/process/posthorn.ts';
import {
  metricOf,
  sendMany,
  startLoad,
  untilDelivered,
  type Sent,
} from '../../support/process/traffic.ts';

const ENDPOINTS = 10;
const ANSWER_AFTER_MS = 1_500;
const PARTITIONS = Number(LOCAL.TOPIC_PARTITIONS);

/** Returns a webhook whose messages are in this partition: webhook ids are the keys of their records. */
async function createWebhookIn(api: ApiClient, partition: number, url: string): Promise<string> {
  for (;;) {
    const { webhookId } = await api.createTarget(url);
    if (partitionOf(webhookId, PARTITIONS) === partition) return webhookId;
  }
}

describe('A dispatcher that starts while others deliver', () => {
  let posthorn: Posthorn;
  let endpoints: BusyEndpoint[];
  let webhookIds: string[];

  beforeAll(async () => {
    posthorn = await startPosthorn({
      DELIVERY_TIMEOUT_MS: '5000',
      ENDPOINT_CONCURRENCY: '4',
      RETRY_DELAYS: '1s,2s',
    });
    await posthorn.start('dispatcher');
    endpoints = await Promise.all(Array.from({ length: ENDPOINTS }, startBusyEndpoint));
    for (const endpoint of endpoints) endpoint.answerWith(200, ANSWER_AFTER_MS);
    // A dispatcher that joins gets one partition at least, and there must be messages for it in each.
    webhookIds = await Promise.all(
      endpoints.map(({ url }, index) => createWebhookIn(posthorn.api, index % PARTITIONS, url)),
    );
  }, 120_000);

  afterAll(async () => {
    await Promise.all(endpoints.map((each) => each.close()));
    await posthorn.stop();
  }, 60_000);

  const sumOf = (count: (endpoint: BusyEndpoint) => number): number =>
    endpoints.reduce((sum, each) => sum + count(each), 0);
  const makesAttempts = (service: RunningService) =>
    // It waits for the leases of the former owner, up to 10 s, after its start and its join.
    eventually(
      'attempts of the new one',
      async () => (await metricOf(service, 'posthorn_delivery_attempts_total')) > 0,
      60_000,
    );

  /** Returns the messages whose number of requests differs from their number of attempts. */
  async function notMadeOnce(sent: Sent[]): Promise<string[]> {
    const deliveries = await untilDelivered(posthorn.api, sent, 45_000);
    return deliveries
      .filter(({ messageId, attemptCount }) => {
        return sumOf(({ requests }) => requests.get(messageId) ?? 0) !== attemptCount;
      })
      .map(({ messageId }) => messageId);
  }

  it('repeats no attempt that runs at the former owner of its partition', async () => {
    const load = startLoad(posthorn.api, webhookIds, 25);
    await eventually('many under way', () => sumOf(({ open }) => open()) >= 20);
    await makesAttempts(await posthorn.start('dispatcher'));
    expect(await notMadeOnce(await load.stop())).toEqual([]);
  });

  it('repeats no attempt that waits at the former owner for longer than a lease', async () => {
    const before = sumOf(({ total }) => total());
    // 4 at once take 1.5 s: the last of 60 waits for 22 s, and a lease ends 5 s after the timeout of 5 s.
    const sent = await sendMany(posthorn.api, webhookIds, 60);
    await eventually('a long wait', () => sumOf(({ total }) => total()) >= before + 240, 40_000);
    await Promise.all([posthorn.start('dispatcher'), posthorn.start('dispatcher')]);
    expect(await notMadeOnce(sent)).toEqual([]);
  });
});
