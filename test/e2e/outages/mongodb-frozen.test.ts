import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import {
  answersTo,
  everyRequest,
  timed,
  type TimedAnswer,
} from '../../support/api/call-every-operation.ts';
import { createApiClient, type ApiClient } from '../../support/api/api-client.ts';
import {
  startPosthorn,
  type Posthorn,
  type RunningService,
} from '../../support/process/posthorn.ts';
import { statusOf } from '../../support/process/service-process.ts';
import { createNamespace } from '../../support/process/namespace.ts';
import { startStoreProxy, type StoreProxy } from '../../support/process/store-proxy.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

const MAX_MS = 10_000;
const DRAIN_MS = 2_000;
/** What a stop may take beyond its drain time. */
const CLOSING_MS = 10_000;

describe('A MongoDB that is frozen', () => {
  let proxy: StoreProxy;
  let posthorn: Posthorn;
  let receiver: Receiver;
  let gateway: RunningService;
  let api: ApiClient;
  let webhookId: string;

  beforeAll(async () => {
    const { MONGODB_URL } = createNamespace();
    [receiver, proxy] = await Promise.all([startReceiver(), startStoreProxy(MONGODB_URL)]);
    posthorn = await startPosthorn({ MONGODB_URL });
    // Only this gateway is cut off.
    const [port = 0] = await freePorts(1);
    const settings = { MONGODB_URL: proxy.url, PORT: String(port) };
    gateway = await posthorn.start('gateway', {
      ...settings,
      DRAIN_TIMEOUT_MS: String(DRAIN_MS),
    });
    const companyId = { companyid: posthorn.companyId };
    api = createApiClient(`http://127.0.0.1:${port}`, posthorn.apiKey, companyId);
    ({ webhookId } = await posthorn.api.createTarget(receiver.url));
  }, 120_000);

  afterAll(async () => {
    await proxy.close();
    await posthorn.stop();
    await receiver.close();
  }, 60_000);

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

  it('lets no request wait for longer than 10 s, whatever it asks for, and loses no message', async () => {
    const ids = await posthorn.api.createTarget(receiver.url);
    const { messageId, deliveryId } = await posthorn.api.send(
      { webhookId: ids.webhookId },
      { first: true },
    );
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const until = new Date().toISOString();
    const known = {
      ...ids,
      messageId,
      deliveryId,
      keyId: 'key_1',
      resendId: 'rsnd_1',
      linkId: 'plnk_1',
      since,
      until,
    };
    const every = await everyRequest(posthorn.baseUrl, { ...known, url: receiver.url });
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

  it('does not keep a gateway from ending when it is stopped', async () => {
    await freezeWithCachedKey();
    const waiting = sendOnce('stopped').catch(() => null);
    await eventually('a request waits', async () => {
      const metrics = await fetch(`${gateway.opsUrl}/metrics`);
      return /^posthorn_http_requests_in_flight [1-9]/m.test(await metrics.text());
    });
    const startedMs = performance.now();
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
    expect(performance.now() - startedMs).toBeLessThan(DRAIN_MS + CLOSING_MS + 1_000);
    await waiting;
    proxy.thaw();
  }, 60_000);
});
