import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  answersTo,
  everyRequest,
  type TimedAnswer,
} from '../../support/api/call-every-operation.ts';
import { createApiClient, type ApiClient } from '../../support/api/api-client.ts';
import type { PlacedRequest } from '../../support/api/request-places.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { createNamespace } from '../../support/process/namespace.ts';
import { startStoreProxy, type StoreProxy } from '../../support/process/store-proxy.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';

const MAX_MS = 10_000;
const DRAIN_MS = 2_000;

let proxy: StoreProxy;
let posthorn: Posthorn;
let receiver: Receiver;
let api: ApiClient;

beforeAll(async () => {
  [receiver, proxy] = await Promise.all([
    startReceiver(),
    startStoreProxy(createNamespace().REDIS_URL),
  ]);
  const cutOff = { REDIS_URL: proxy.url, DRAIN_TIMEOUT_MS: String(DRAIN_MS) };
  posthorn = await startPosthorn({}, { gateway: cutOff });
  const companyId = { companyid: posthorn.companyId };
  api = createApiClient(posthorn.baseUrl, posthorn.apiKey, companyId);
}, 120_000);

afterAll(async () => {
  await proxy.close();
  await posthorn.stop();
  await receiver.close();
}, 60_000);

/** Returns a request to each operation, for resources that exist. */
async function requestsToNew(): Promise<PlacedRequest[]> {
  const ids = await api.createTarget(receiver.url);
  const { messageId, deliveryId } = await api.send({ webhookId: ids.webhookId }, {});
  const since = new Date(Date.now() - 3_600_000).toISOString();
  const until = new Date().toISOString();
  const unknown = { keyId: 'key_1', resendId: 'rsnd_1', linkId: 'plnk_1' };
  const known = { ...ids, messageId, deliveryId, ...unknown, since, until };
  return everyRequest(posthorn.baseUrl, { ...known, url: receiver.url });
}

/** Nothing else knows which circuits are open. */
const ONLY_IN_REDIS = 'GET /api/v1/circuits';

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

describe('A Redis that accepts connections', () => {
  it('and replies two seconds late lets no request wait', async () => {
    const requests = await requestsToNew();
    proxy.delay(2_000);
    expectAnswered(await answersTo(api, requests));
    proxy.delay(0);
  }, 60_000);

  it('and never replies lets no request wait, and no stop', async () => {
    const requests = await requestsToNew();
    proxy.freeze();
    expectAnswered(await answersTo(api, requests));
    const startedMs = performance.now();
    expect(await posthorn.gateway.stop()).toEqual({ code: 0, signal: null });
    expect(performance.now() - startedMs).toBeLessThan(DRAIN_MS + 2_000);
    // A start does not need it either.
    await posthorn.start('gateway', { REDIS_URL: proxy.url });
    expectAnswered(await answersTo(api, requests));
  }, 60_000);
});
