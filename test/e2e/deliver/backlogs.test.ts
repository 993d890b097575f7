import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiClient } from '../../support/api/api-client.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import { createCompany } from '../../support/process/companies.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { metricOf, sendMany, untilDelivered, untilMetric } from '../../support/process/traffic.ts';
import { MEMORY_FLAGS, watchMemory } from '../../support/process/watch-memory.ts';
import { startBusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { startConnectProxy } from '../../support/receivers/connect-proxy.ts';
import { openRawEndpoint, type RawEndpoint } from '../../support/receivers/raw-endpoint.ts';
import { startReceiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

const DEFERRALS = 'posthorn_deferrals_total';
const START = 16;

let posthorn: Posthorn<'gateway' | 'dispatcher'>;
let api: ApiClient;

beforeAll(async () => {
  posthorn = await startPosthorn(
    {
      ...MEMORY_FLAGS,
      ENDPOINT_CONCURRENCY: String(START),
      ENDPOINT_CONCURRENCY_MAX: '300',
    },
    { processes: ['gateway', 'dispatcher'] },
  );
  ({ api } = posthorn);
}, 120_000);

afterAll(() => posthorn.stop());

const MANY = 1_500;

interface ShownHealth {
  concurrency: { now: number; floor: number; ceiling: number };
}

/** First, while no other story has had anything deferred. */
describe('A healthy endpoint with many messages', () => {
  it('gets a higher concurrency limit, and none of its attempts is deferred or moves to the slow lane', async () => {
    const { dispatcher } = posthorn;
    const busy = await startBusyEndpoint();
    busy.answerWith(200, 100);
    const { webhookId } = await api.createTarget(busy.url);
    const sent = await sendMany(api, [webhookId], MANY);
    const shown = await eventually('a higher limit is shown', async () => {
      const health = await api.get(`/api/v1/webhooks/${webhookId}/health`);
      const { concurrency } = dataOf<ShownHealth>(health);
      return concurrency.now > START && concurrency;
    });
    expect(shown).toMatchObject({ floor: 1, ceiling: 300 });

    await untilDelivered(api, sent);
    expect(busy.mostOpen()).toBeGreaterThan(START);
    expect(busy.mostOpen()).toBeLessThanOrEqual(300);
    expect(busy.total()).toBe(MANY);
    expect(await metricOf(dispatcher, DEFERRALS)).toBe(0);
    expect(await metricOf(dispatcher, 'posthorn_slow_lane_spills_total')).toBe(0);
    await busy.close();
  }, 120_000);
});

/** No company may have so many unread records while nothing is read (publish-budget.ts). */
const SENT = 700;

describe('A company whose records are not read as fast as it sends messages', () => {
  afterAll(() => {
    posthorn.dispatcher.signal('SIGCONT');
  });

  it('waits in the gateway, another one does not, and everything is delivered once', async () => {
    const { dispatcher, gateway } = posthorn;
    const endpoint = await startBusyEndpoint();
    // What a company may have unread follows from how fast its records were read before.
    const company = await createCompany(posthorn, 'New');
    const other = await createCompany(posthorn, 'Other');
    const { webhookId } = await company.api.createTarget(endpoint.url);
    const { webhookId: ofOther } = await other.api.createTarget(endpoint.url);
    await untilDelivered(company.api, await sendMany(company.api, [webhookId], 1));

    dispatcher.signal('SIGSTOP');
    const sent = await sendMany(company.api, [webhookId], SENT);
    await eventually('the company waits', async () => {
      return (await metricOf(gateway, 'posthorn_publish_waiting_companies')) === 1;
    });
    const unpublished = () => metricOf(gateway, 'posthorn_unpublished_messages');
    const waiting = await unpublished();
    const sentByOther = await sendMany(other.api, [ofOther], 10);
    await eventually('the other one does not', async () => (await unpublished()) <= waiting);
    expect(await unpublished()).toBeGreaterThan(0);
    dispatcher.signal('SIGCONT');

    await untilDelivered(other.api, sentByOther);
    await untilDelivered(company.api, sent);
    expect(await metricOf(gateway, 'posthorn_publish_waiting_companies')).toBe(0);
    for (const { messageId } of [...sent, ...sentByOther])
      expect(endpoint.successes.get(messageId)).toBe(1);
    await endpoint.close();
  }, 240_000);
});

const PER_SECOND = 2;
/** Enough for 42 s; at most 30 s of attempts wait in memory, and those that are sent first do not wait for the last. */
const LIMITED = 84;

describe('A webhook with a rate limit of its own', () => {
  it('gets every message in one attempt within the 42 s that its rate takes, also deferred ones, while other webhooks are served', async () => {
    const receiver = await startReceiver();
    const limited = await api.createTarget(receiver.url, { rateLimitPerSecond: PER_SECOND });
    const { webhookId } = await api.createTarget(receiver.url);
    const sent = await Promise.all(
      Array.from({ length: LIMITED }, (_, n) => api.send({ webhookId: limited.webhookId }, { n })),
    );
    const other = await api.send({ webhookId }, {});
    await eventually('the neighbour', () => receiver.of(other.messageId).length === 1);
    expect(receiver.received.length).toBeLessThan(LIMITED);

    await untilMetric(posthorn.dispatcher, DEFERRALS, 'because="pace"');
    const deliveries = await untilDelivered(api, sent, 120_000);
    expect(deliveries.filter(({ attemptCount }) => attemptCount !== 1)).toEqual([]);
    expect(receiver.received).toHaveLength(LIMITED + 1);
    await receiver.close();
  });
});

const ENDPOINTS = 64;
const EACH = 4;
const MAX_GROWTH_MIB = 60;

const HEAD = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
const chunks = (bytes: number, times: number): string =>
  `${bytes}\r\n${'x'.repeat(bytes)}\r\n`.repeat(times);

describe('64 endpoints of one company that drip their responses [security]', () => {
  let endpoints: RawEndpoint[];
  let webhookIds: string[];

  beforeAll(async () => {
    endpoints = await Promise.all(Array.from({ length: ENDPOINTS }, openRawEndpoint));
    webhookIds = [];
    for (const { origin } of endpoints) {
      webhookIds.push((await api.createTarget(`${origin}/`, { timeoutSeconds: 4 })).webhookId);
    }
    // Connections and what V8 keeps for garbage are the same after the first round and after any; what is kept of
    // responses that hang would be there again in each.
    await deliver(HEAD + chunks(1, 4_095));
  }, 240_000);

  afterAll(() => {
    for (const endpoint of endpoints) endpoint.close();
  });

  /** Sends messages to all endpoints, which answer so; resolves when each delivery has its status. */
  async function deliver(response: string): Promise<void> {
    for (const endpoint of endpoints) endpoint.talk = (socket) => socket.write(response);
    const sent = await sendMany(api, webhookIds, EACH);
    await untilDelivered(api, sent, 180_000);
  }

  it.each([
    ['4,095 chunks of one byte', chunks(1, 4_095)],
    ['1,000 chunks of four bytes', chunks(4, 1_000)],
  ])(
    'and hang until the time-out of 4 s cost the dispatcher no memory: %s',
    async (_what, body) => {
      const memory = await watchMemory(posthorn.dispatcher);
      await deliver(HEAD + body);
      expect(await memory.grownMib()).toBeLessThan(MAX_GROWTH_MIB);
    },
    240_000,
  );
});

const PASSWORD = 'hunter2';

describe('A delivery whose proxy fails', () => {
  it('waits, and is made with its first attempt once the proxy works [security]', async () => {
    const [proxy, receiver] = [await startConnectProxy(), await startReceiver()];
    const url = new URL(proxy.url);
    [url.username, url.password] = ['me', PASSWORD];
    await posthorn.dispatcher.stop();
    const settings = { EGRESS_PROXY_URL: url.href, CIRCUIT_RESET_MS: '1000' };
    const dispatcher = await posthorn.start('dispatcher', settings);
    proxy.behave({ kind: 'answer', status: 407 });
    const { webhookId } = await api.createTarget(receiver.url);
    const sent = await sendMany(api, [webhookId], 20);
    // More often than the endpoint has attempts, and than failures that open a circuit.
    await untilMetric(dispatcher, DEFERRALS, 'because="proxy"', 40);
    expect(receiver.received).toEqual([]);

    const { host, port } = new URL(receiver.url);
    proxy.behave({ kind: 'tunnel', port: Number(port) });
    const deliveries = await untilDelivered(api, sent);
    expect(deliveries.map(({ attemptCount }) => attemptCount)).toEqual(deliveries.map(() => 1));
    expect(receiver.received).toHaveLength(20);
    expect(new Set(proxy.asked)).toEqual(new Set([host]));
    expect(await metricOf(dispatcher, DEFERRALS, 'because="circuit"')).toBe(0);
    expect(dispatcher.output()).not.toContain(PASSWORD);
    await Promise.all([proxy.close(), receiver.close()]);
  });
});
