import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { partitionOf } from '@posthorn/platform/kafka/producer.ts';
import { startBusyEndpoint, type BusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { eventually } from '../../support/time/eventually.ts';
import {
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
/** More than dispatchers run at once. */
const PARTITIONS = 4;

/** Each story leaves one dispatcher running. */
describe('Dispatchers that come and go under load', () => {
  let posthorn: Posthorn;
  let endpoints: BusyEndpoint[];
  let webhookIds: string[];
  /** The dispatchers that run. */
  let running: RunningService[];

  beforeAll(async () => {
    posthorn = await startPosthorn({
      TOPIC_PARTITIONS: String(PARTITIONS),
      DELIVERY_TIMEOUT_MS: '5000',
      ENDPOINT_CONCURRENCY: '4',
      RETRY_DELAYS: '1s,2s',
    });
    running = [posthorn.dispatcher];
    endpoints = await Promise.all(Array.from({ length: ENDPOINTS }, startBusyEndpoint));
    // A dispatcher that joins gets one partition at least, and there must be messages for it in each.
    webhookIds = await Promise.all(
      endpoints.map(({ url }, index) => createWebhookIn(index % PARTITIONS, url)),
    );
  }, 120_000);

  afterAll(async () => {
    await Promise.all(endpoints.map((each) => each.close()));
    await posthorn.stop();
  });

  /** Returns a webhook whose messages are in this partition: webhook ids are the keys of their records. */
  async function createWebhookIn(partition: number, url: string): Promise<string> {
    for (;;) {
      const { webhookId } = await posthorn.api.createTarget(url);
      if (partitionOf(webhookId, PARTITIONS) === partition) return webhookId;
    }
  }

  async function startDispatcher(): Promise<RunningService> {
    const dispatcher = await posthorn.start('dispatcher');
    running.push(dispatcher);
    return dispatcher;
  }

  async function stopAllButOne(): Promise<void> {
    await Promise.all(running.splice(1).map((each) => each.stop()));
  }

  function answerAfter(ms: number): void {
    for (const endpoint of endpoints) endpoint.answerWith(200, ms);
  }

  const sumOf = (count: (endpoint: BusyEndpoint) => number): number =>
    endpoints.reduce((sum, each) => sum + count(each), 0);
  const requestsOf = ({ messageId }: Pick<Sent, 'messageId'>): number =>
    sumOf(({ requests }) => requests.get(messageId) ?? 0);

  const makesAttempts = (service: RunningService) =>
    // It waits for the leases of the former owner, up to 10 s, after its start and its join.
    eventually(
      'attempts of the new one',
      async () => (await metricOf(service, 'posthorn_delivery_attempts_total')) > 0,
      60_000,
    );

  /** Returns the messages whose number of requests differs from their number of attempts. */
  async function notMadeOnce(sent: Sent[]): Promise<string[]> {
    const deliveries = await untilDelivered(posthorn.api, sent);
    return deliveries
      .filter((each) => requestsOf(each) !== each.attemptCount)
      .map(({ messageId }) => messageId);
  }

  it('repeat no attempt that runs at the former owner of a partition when one joins', async () => {
    answerAfter(1_500);
    await startDispatcher();
    const load = startLoad(posthorn.api, webhookIds, 25);
    await eventually('many under way', () => sumOf(({ open }) => open()) >= 20);
    await makesAttempts(await startDispatcher());
    expect(await notMadeOnce(await load.stop())).toEqual([]);
    await stopAllButOne();
  });

  it('repeat no attempt that waits at the former owner for longer than a lease of 10 s', async () => {
    answerAfter(1_500);
    const before = sumOf(({ total }) => total());
    // 4 at once take 1.5 s: the last of 60 waits for 22 s, and a lease ends 5 s after the timeout of 5 s.
    const sent = await sendMany(posthorn.api, webhookIds, 60);
    await eventually('a long wait', () => sumOf(({ total }) => total()) >= before + 240);
    await Promise.all([startDispatcher(), startDispatcher()]);
    expect(await notMadeOnce(sent)).toEqual([]);
    await stopAllButOne();
  });
});
