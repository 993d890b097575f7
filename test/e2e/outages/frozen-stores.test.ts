import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { createApiClient, type ApiClient } from '../../support/api/api-client.ts';
import {
  answersTo,
  everyRequest,
  timed,
  type TimedAnswer,
} from '../../support/api/call-every-operation.ts';
import type { PlacedRequest } from '../../support/api/request-places.ts';
import { startKafkaProxy, type KafkaProxy } from '../../support/process/kafka-proxy.ts';
import {
  SERVICES,
  startPosthorn,
  type Posthorn,
  type ServiceProcess,
  type UsualService,
} from '../../support/process/posthorn.ts';
import { startProgram, statusOf, type Running } from '../../support/process/service-process.ts';
import { startStoreProxy, type StoreProxy } from '../../support/process/store-proxy.ts';
import { metricOf, sendMany } from '../../support/process/traffic.ts';
import { useReceiver } from '../../support/process/use-company.ts';
import { insertFailedDeliveries } from '../../support/stores/insert-failed-deliveries.ts';
import { eventually } from '../../support/time/eventually.ts';

/** What a busy machine may add. Without its limit, each of the following would last until the store is thawed. */
const SLOW_MS = 5_000;
/** Of every answer (docs/contract.md C15.4). */
const MAX_MS = 10_000 + SLOW_MS;
const DRAIN_MS = 2_000;
/** A drain, and ten seconds to close. */
const STOPPED_WITHIN_MS = DRAIN_MS + 10_000 + SLOW_MS;

/** More than one insert takes. */
const BATCH_SIZE = 300;

interface BatchResult {
  index: number;
  status: 'accepted' | 'replayed' | 'failed';
  messageId?: string;
}

/** A batch that has been answered. */
interface SentBatch {
  key: string;
  /** The ids of the messages that were accepted, by their place. */
  accepted: Map<number, string>;
}

let posthorn: Posthorn<UsualService>;
const receiver = useReceiver();

beforeAll(async () => {
  posthorn = await startPosthorn(
    {
      DRAIN_TIMEOUT_MS: String(DRAIN_MS),
      RETRY_DELAYS: '100ms,1s,1h',
    },
    { processes: SERVICES },
  );
}, 120_000);

afterAll(async () => {
  await posthorn.stop();
});

/** Starts one more gateway, which reaches a store through a proxy, and a client of it. */
async function startCutOff(
  settings: Record<string, string>,
): Promise<{ gateway: ServiceProcess; api: ApiClient }> {
  const [port = 0] = await freePorts(1);
  const gateway = await posthorn.startProcess('gateway', { ...settings, PORT: String(port) });
  const companyId = { companyid: posthorn.companyId };
  return {
    gateway,
    api: createApiClient(`http://127.0.0.1:${port}`, posthorn.apiKey, companyId),
  };
}

/** Returns a request to each operation, for resources that exist. */
async function requestsToNew(): Promise<PlacedRequest[]> {
  const ids = await posthorn.api.createTarget(receiver.url);
  const { messageId, deliveryId } = await posthorn.api.send({ webhookId: ids.webhookId }, {});
  const since = new Date(Date.now() - 3_600_000).toISOString();
  const until = new Date().toISOString();
  const unknown = {
    keyId: 'key_1',
    resendId: 'rsnd_1',
    cancellationId: 'cncl_1',
    linkId: 'plnk_1',
    personId: 'usr_1',
    invitationId: 'inv_1',
    eventTypeName: 'order.paid',
  };
  const known = { ...ids, messageId, deliveryId, ...unknown, since, until };
  return everyRequest(posthorn.baseUrl, { ...known, url: receiver.url });
}

/** Stops the services at once; expects each to end with 0 in its time. */
async function expectStop(services: readonly Running[], withinMs: number): Promise<void> {
  const beganAtMs = performance.now();
  const ends = await Promise.all(services.map((service) => service.stop()));
  expect(performance.now() - beganAtMs).toBeLessThan(withinMs);
  expect(ends).toEqual(services.map(() => ({ code: 0, signal: null })));
}

describe('A MongoDB that is frozen', () => {
  let proxy: StoreProxy;
  let gateway: ServiceProcess;
  let api: ApiClient;
  let webhookId: string;

  beforeAll(async () => {
    proxy = await startStoreProxy(posthorn.env.MONGODB_URL);
    ({ gateway, api } = await startCutOff({ MONGODB_URL: proxy.url }));
    ({ webhookId } = await posthorn.api.createTarget(receiver.url));
  });

  afterAll(() => proxy.close());

  /** Sends a message with an idempotency key. */
  const sendOnce = (key: string) =>
    api.post('/webhook-messages', { webhookId, payload: { key } }, { 'idempotency-key': key });

  const arrivedWith = (key: string): number =>
    receiver.received.filter(({ body }) => body.toString() === JSON.stringify({ key })).length;

  const expectRefused = (answers: readonly TimedAnswer[]): void => {
    for (const { tookMs, ...answer } of answers) {
      const { request } = answer;
      expect(answer).toEqual({ request, status: 503, code: 'unavailable', retryAfter: '2' });
      expect([request, tookMs < MAX_MS || tookMs]).toEqual([request, true]);
    }
  };

  /** An API key is cached for two seconds: requests that follow get beyond the check of the key. */
  async function freezeWithCachedKey(): Promise<void> {
    const known = await api.get('/api/v1/projects');
    expect(known.status).toBe(200);
    proxy.freeze();
  }

  async function thaw(): Promise<void> {
    proxy.thaw();
    await eventually('ready', async () => (await statusOf(`${gateway.opsUrl}/readyz`)) === 200);
  }

  it('delays no request for longer than 10 s, and loses no message', async () => {
    const every = await requestsToNew();
    // All but the one whose response is in the configuration.
    const requests = every.filter(({ path }) => path !== '/api/v1/source-ips');
    expect(requests).toHaveLength(every.length - 1);
    await freezeWithCachedKey();
    const first = timed('POST with a key', () => sendOnce('frozen'));
    expectRefused(await answersTo(api, requests));
    expectRefused([await first]);
    // The key of the caller is no longer cached.
    expectRefused(await answersTo(api, requests.slice(0, 3)));
    expect(await statusOf(`${gateway.opsUrl}/readyz`)).toBe(503);
    expect(await statusOf(`${gateway.opsUrl}/livez`)).toBe(200);

    await thaw();
    const repeat = await eventually('the repeat is accepted', async () => {
      const answer = await sendOnce('frozen');
      return answer.status === 202 ? answer : null;
    });
    await eventually('the message arrives', () => arrivedWith('frozen') > 0);
    const again = await sendOnce('frozen');
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(again.body.data).toEqual(repeat.body.data);
    const last = await sendOnce('after');
    expect(last.status).toBe(202);
    await eventually('a later message arrives', () => arrivedWith('after') > 0);
    expect(arrivedWith('frozen')).toBe(1);
  }, 120_000);

  /** Sends batches one after the other, each with a key, until `isOver`, and notes what each was told of its messages. */
  async function sendBatches(isOver: () => boolean, name: string, sent: SentBatch[]) {
    for (let n = 0; !isOver(); n += 1) {
      const batch = { key: `${name}-${n}`, accepted: new Map<number, string>() };
      const startedMs = performance.now();
      const results = await resultsOf(batch.key);
      const tookMs = performance.now() - startedMs;
      expect(tookMs < MAX_MS || tookMs).toBe(true);
      for (const { index, status, messageId = '' } of results) {
        if (status === 'accepted') batch.accepted.set(index, messageId);
      }
      sent.push(batch);
    }
  }

  /** Returns no result for a batch that is 503 as a whole. */
  async function resultsOf(key: string): Promise<BatchResult[]> {
    const messages = Array.from({ length: BATCH_SIZE }, (_, n) => {
      return { webhookId, payload: { key: `${key}#${n}` } };
    });
    const path = '/api/v1/webhook-messages/batch';
    const { status, body } = await api.post(path, { messages }, { 'idempotency-key': key });
    if (status === 503) return [];
    expect(status).toBe(202);
    return (body.data as { results: BatchResult[] }).results;
  }

  it('gives each message of a batch a true result, and a repeat sends nothing twice', async () => {
    const { opsUrl } = gateway;
    await eventually('ready', async () => (await statusOf(`${opsUrl}/readyz`)) === 200);
    let isOver = false;
    const sent: SentBatch[] = [];
    const sending = ['a', 'b', 'c'].map((name) => sendBatches(() => isOver, name, sent));
    const countOf = () => metricOf(gateway, 'posthorn_messages_accepted_total');
    const reached = async (more: number): Promise<void> => {
      const before = await countOf();
      await eventually('further messages', async () => (await countOf()) >= before + more, 60_000);
    };
    await reached(2 * BATCH_SIZE);
    proxy.freeze();
    const isRefused = ({ accepted }: SentBatch): boolean => accepted.size < BATCH_SIZE;
    await eventually('a batch is refused in part or whole', () => sent.some(isRefused), 30_000);
    proxy.cut();
    proxy.thaw();
    await reached(2 * BATCH_SIZE);
    proxy.cut();
    await reached(BATCH_SIZE);
    isOver = true;
    await Promise.all(sending);
    for (const { key, accepted } of sent) {
      // A claim whose message was not stored counts for two minutes.
      const again = await eventually(
        `batch ${key} is stored`,
        async () => {
          const results = await resultsOf(key);
          const isStored = results.every(({ status }) => status !== 'failed');
          return results.length > 0 && isStored ? results : null;
        },
        180_000,
      );
      for (const { index, status, messageId } of again) {
        if (accepted.has(index))
          expect([status, messageId]).toEqual(['replayed', accepted.get(index)]);
      }
      const ids = again.map(({ messageId = '' }) => messageId);
      await eventually('all arrive', () => ids.every((id) => receiver.of(id).length > 0), 60_000);
    }
    const keys = new Set(sent.map(({ key }) => key));
    const arrived = receiver.received
      .map(({ body }) => (JSON.parse(body.toString()) as { key?: string }).key ?? '')
      .filter((key) => keys.has(key.split('#')[0] ?? ''));
    expect(arrived).toHaveLength(sent.length * BATCH_SIZE);
    expect(new Set(arrived).size).toBe(arrived.length);
  }, 400_000);

  it('does not keep a gateway from ending when it is stopped', async () => {
    await freezeWithCachedKey();
    const waiting = sendOnce('stopped').catch(() => null);
    await eventually('a request waits', async () => {
      const metrics = await fetch(`${gateway.opsUrl}/metrics`);
      return /^posthorn_http_requests_in_flight [1-9]/m.test(await metrics.text());
    });
    await expectStop([gateway], STOPPED_WITHIN_MS);
    await waiting;
    proxy.thaw();
  });
});

/** Nothing else knows which circuits are open. */
const ONLY_IN_REDIS = 'GET /api/v1/circuits';

describe('A Redis that accepts connections', () => {
  let proxy: StoreProxy;
  let gateway: ServiceProcess;
  let api: ApiClient;

  beforeAll(async () => {
    proxy = await startStoreProxy(posthorn.env.REDIS_URL);
    ({ gateway, api } = await startCutOff({ REDIS_URL: proxy.url }));
  });

  afterAll(() => proxy.close());

  function expectAnswered(answers: readonly TimedAnswer[]): void {
    for (const { request, status, tookMs } of answers) {
      const isAnswered = status < 500 || (request === ONLY_IN_REDIS && status === 503);
      expect([request, isAnswered || status, tookMs < MAX_MS || tookMs]).toEqual([
        request,
        true,
        true,
      ]);
    }
  }

  it('a Redis that replies two seconds late delays no request', async () => {
    const requests = await requestsToNew();
    proxy.delay(2_000);
    expectAnswered(await answersTo(api, requests));
    proxy.delay(0);
  });

  it('a Redis that never replies lets a gateway use no changed webhook and no revoked key', async () => {
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const made = await posthorn.api.post('/api/v1/api-keys', { name: 'Revoked' });
    const { id, key } = made.body.data as { id: string; key: string };
    const send = async () => {
      const message = { webhookId, payload: { n: 1 } };
      return (await api.post('/webhook-messages', message, { 'x-api-key': key })).status;
    };
    proxy.freeze();
    // Longer than anything is cached that is not followed.
    const cachedUntilMs = performance.now() + 3_000;
    await eventually('cached for some time', async () => {
      expect(await send()).toBe(202);
      return performance.now() > cachedUntilMs;
    });
    await posthorn.api.delete(`/webhooks/${webhookId}`);
    await eventually('the webhook is gone', async () => (await send()) === 404);
    await posthorn.api.delete(`/api/v1/api-keys/${id}`);
    await eventually('the key is refused', async () => (await send()) === 401);
    proxy.thaw();
  });

  it('a Redis that never replies delays no request, and no stop', async () => {
    const requests = await requestsToNew();
    proxy.freeze();
    expectAnswered(await answersTo(api, requests));
    // It does not use the time to close.
    await expectStop([gateway], DRAIN_MS + 1_000 + SLOW_MS);
    // A start does not need it either.
    ({ gateway, api } = await startCutOff({ REDIS_URL: proxy.url }));
    expectAnswered(await answersTo(api, requests));
    await gateway.stop();
  });
});

const FAILED = 50;

describe('A retry process whose Kafka is frozen', () => {
  let proxy: KafkaProxy;
  let mongo: MongoConnection;
  /** The one that is cut off. */
  let cutOff: ServiceProcess;
  let retryDue: string;

  beforeAll(async () => {
    const { KAFKA_BROKERS, MONGODB_URL, TOPIC_PREFIX } = posthorn.env;
    retryDue = `topic="${TOPIC_PREFIX}retry-due"`;
    [proxy, mongo] = await Promise.all([
      startKafkaProxy(KAFKA_BROKERS),
      connectMongo(MONGODB_URL, 'posthorn-test'),
    ]);
    cutOff = await posthorn.startProcess('retry', { KAFKA_BROKERS: proxy.broker });
  });

  afterAll(() => Promise.all([mongo.close(), proxy.close()]));

  const produced = (): Promise<number> =>
    metricOf(cutOff, 'posthorn_kafka_produced_records_total', retryDue);
  const consumed = (): Promise<number> =>
    metricOf(posthorn.dispatcher, 'posthorn_kafka_consumed_records_total', retryDue);

  /** Begins a resend that the process which is cut off works on. Returns the ids of the messages. */
  async function resendFailed(): Promise<string[]> {
    await posthorn.retry.stop();
    proxy.block();
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const { companyId } = posthorn;
    const messageIds = await insertFailedDeliveries(mongo.db, { companyId, webhookId }, FAILED);
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const path = `/api/v1/webhooks/${webhookId}/resend-failed`;
    expect((await posthorn.api.post(path, { since })).status).toBe(202);
    const claimed = { companyId, status: 'running', 'page.0': { $exists: true } } as const;
    await eventually('its page', () => collection(mongo.db, 'resends').findOne(claimed));
    posthorn.retry = await posthorn.startProcess('retry');
    return messageIds;
  }

  const attemptsOf = (messageIds: readonly string[]): number[] =>
    messageIds.map((messageId) => receiver.of(messageId).length);

  it('leaves a resend to another one, and what both publish is sent once', async () => {
    const messageIds = await resendFailed();
    await eventually(
      'the other process sends it',
      () => attemptsOf(messageIds).every((attempts) => attempts > 0),
      60_000,
    );
    const before = await consumed();
    proxy.unblock();
    await eventually('this process publishes its copies', async () => (await produced()) >= FAILED);
    await eventually('they are read', async () => (await consumed()) >= before + FAILED);
    expect(attemptsOf(messageIds)).toEqual(messageIds.map(() => 1));
  }, 120_000);

  it('ends when it is stopped, and its resend goes on elsewhere', async () => {
    const messageIds = await resendFailed();
    await expectStop([cutOff], STOPPED_WITHIN_MS);
    await eventually(
      'the other process sends it',
      () => attemptsOf(messageIds).every((attempts) => attempts === 1),
      60_000,
    );
  }, 120_000);
});

describe('A gateway whose Kafka is frozen', () => {
  it('shows its overview, whose lag was measured before', async () => {
    const proxy = await startKafkaProxy(posthorn.env.KAFKA_BROKERS);
    const settings = { KAFKA_BROKERS: proxy.broker, INGEST_COMPANY_TOPICS: 'true' };
    const { gateway, api } = await startCutOff(settings);
    proxy.block();
    expect((await api.get('/api/v1/overview')).status).toBe(200);
    await gateway.stop();
    await proxy.close();
  });

  describe('and messages with an ordering key', () => {
    let proxy: KafkaProxy;
    let cutOff: ApiClient;
    let gateway: ServiceProcess;
    let ordered: string;
    let plain: string;

    beforeAll(async () => {
      proxy = await startKafkaProxy(posthorn.env.KAFKA_BROKERS);
      ({ gateway, api: cutOff } = await startCutOff({ KAFKA_BROKERS: proxy.broker }));
      [ordered, plain] = [await webhookWith('block'), await webhookWith('none')];
    });

    afterAll(async () => {
      await gateway.stop();
      await proxy.close();
    });

    async function webhookWith(ordering: string): Promise<string> {
      const { webhookId } = await posthorn.api.createTarget(receiver.url);
      expect((await posthorn.api.put(`/webhooks/${webhookId}`, { ordering })).status).toBe(200);
      return webhookId;
    }

    const messageTo = (webhookId: string, n: number) => {
      return { webhookId, payload: { n }, orderingKey: 'order-17' };
    };
    const post = (api: ApiClient, body: object, key: string) =>
      api.post('/webhook-messages', body, { 'idempotency-key': key });
    const sendBatch = (api: ApiClient, key: string, messages: readonly object[]) =>
      api.post('/api/v1/webhook-messages/batch', { messages }, { 'idempotency-key': key });
    const statesIn = ({ body }: Awaited<ReturnType<typeof sendBatch>>): string[] =>
      (body.data as { results: BatchResult[] }).results.map(({ status }) => status);

    it('accepts one only when Kafka has its records, and others as before', async () => {
      proxy.block();
      const { orderingKey: _, ...unkeyed } = messageTo(ordered, 1);
      expect((await post(cutOff, unkeyed, 'unkeyed')).status).toBe(202);
      expect((await post(cutOff, messageTo(plain, 2), 'plain')).status).toBe(202);
      const { tookMs, status } = await timed('in order', () =>
        post(cutOff, messageTo(ordered, 3), 'ordered'),
      );
      expect([status, tookMs < MAX_MS || tookMs]).toEqual([503, true]);
    }, 60_000);

    it('accepts the repeat where its records can be published, and delivers it once', async () => {
      const repeat = await post(posthorn.api, messageTo(ordered, 3), 'ordered');
      expect([repeat.status, repeat.headers.get('idempotency-replayed')]).toEqual([202, 'true']);
      const { id } = repeat.body.data as { id: string };
      await eventually('it arrives', () => receiver.of(id).length > 0);
      proxy.unblock();
      const again = await eventually('the gateway that was cut off knows', async () => {
        const answer = await post(cutOff, messageTo(ordered, 3), 'ordered');
        return answer.status === 202 ? answer : null;
      });
      expect((again.body.data as { id: string }).id).toBe(id);
      const next = await post(cutOff, messageTo(ordered, 4), 'next');
      const { id: nextId } = next.body.data as { id: string };
      await eventually('the next one arrives', () => receiver.of(nextId).length > 0);
      expect(receiver.of(id)).toHaveLength(1);
    }, 60_000);

    it('accepts nothing of a batch that is behind one which is unavailable', async () => {
      const batch = [messageTo(plain, 5), messageTo(ordered, 6), messageTo(plain, 7)];
      proxy.block();
      const refused = await sendBatch(cutOff, 'batch', batch);
      expect([refused.status, statesIn(refused)]).toEqual([202, ['accepted', 'failed', 'failed']]);
      const repeat = await sendBatch(posthorn.api, 'batch', batch);
      expect(statesIn(repeat)).toEqual(['replayed', 'replayed', 'replayed']);
      proxy.unblock();
    }, 60_000);
  });
});

const STORES = {
  MONGODB_URL: ({ MONGODB_URL }: Posthorn['env']) => MONGODB_URL,
  KAFKA_BROKERS: ({ KAFKA_BROKERS }: Posthorn['env']) => `kafka://${KAFKA_BROKERS}`,
};

describe('A gateway that is stopped while it starts', () => {
  let proxy: StoreProxy;

  afterEach(() => proxy.close());

  it.each(['MONGODB_URL', 'KAFKA_BROKERS'] as const)(
    'ends with 0 when the store of %s is frozen',
    async (setting) => {
      proxy = await startStoreProxy(STORES[setting](posthorn.env));
      proxy.freeze();
      const [port = 0, opsPort = 0] = await freePorts(2);
      const gateway = startProgram('services/gateway/src/main.ts', [], {
        ...posthorn.env,
        [setting]: proxy.url.replace('kafka://', ''),
        PORT: String(port),
        OPS_PORT: String(opsPort),
      });
      await eventually('it connects', () => proxy.connections() > 0);
      await expectStop([gateway], STOPPED_WITHIN_MS);
    },
  );
});

describe('SIGTERM while a store does not answer', () => {
  let kafka: KafkaProxy;
  let mongo: StoreProxy;
  let services: ServiceProcess[];

  /** In place of the services of the other stories, some that reach the stores through proxies. */
  beforeAll(async () => {
    kafka = await startKafkaProxy(posthorn.env.KAFKA_BROKERS);
    mongo = await startStoreProxy(posthorn.env.MONGODB_URL);
    await posthorn.stopServices();
    receiver.answerWith((response) => {
      setTimeout(() => response.writeHead(500).end(), 300);
    });
  });

  /** Attempts that run, failures that are parked, and retries that are released. */
  beforeEach(async () => {
    const settings = { KAFKA_BROKERS: kafka.broker, MONGODB_URL: mongo.url };
    services = await Promise.all(SERVICES.map((name) => posthorn.startProcess(name, settings)));
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    receiver.received.length = 0;
    await sendMany(posthorn.api, [webhookId], 5);
    await eventually('attempts', () => receiver.received.length > 5, 30_000);
  }, 120_000);

  afterAll(() => Promise.all([kafka.close(), mongo.close()]));

  it.each(['Kafka', 'MongoDB', 'both'])(
    'ends every service with 0 in its time: %s',
    async (store) => {
      if (store !== 'MongoDB') kafka.block();
      if (store !== 'Kafka') mongo.freeze();
      await expectStop(services, STOPPED_WITHIN_MS);
      kafka.unblock();
      mongo.thaw();
    },
    120_000,
  );
});
