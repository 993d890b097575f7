import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { attemptIdOf } from '@posthorn/domain/ids.ts';
import { createApiClient, type ApiClient } from '../../support/api/api-client.ts';
import { aTime, dataOf, expectFailure, expectInvalid } from '../../support/api/expect-answers.ts';
import { createOneOfEach, unknownLike, type Ids } from '../../support/api/one-of-each.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

interface Overview {
  failed: number;
  delivered: number;
  accepted: number;
  series: { failed: number }[];
  worst: { webhookId: string; failed: number }[];
}

let posthorn: OwnCompany;
let receiver: Receiver;
let company: ApiClient;
let ours: Ids;
let theirs: Ids;
/** With a key of our app. */
let limited: ApiClient;

beforeAll(async () => {
  posthorn = await joinShared('contract-after-retries');
  receiver = await startReceiver();
  receiver.answerWith(failing(99));
  const { baseUrl, apiKey, companyId: companyid } = posthorn;
  company = createApiClient(baseUrl, apiKey, { companyid });
  ours = await createOneOfEach(company, receiver.url, 'ours');
  theirs = await createOneOfEach(company, receiver.url, 'theirs');
  const created = await company.post('/api/v1/api-keys', { name: 'ours', appId: ours.appId });
  limited = createApiClient(baseUrl, dataOf<{ key: string }>(created, 201).key);
  // Two attempts and a resend of each. What is counted for the company and for each webhook is written apart.
  const isCounted = async (): Promise<boolean> => {
    const { failed, worst } = await overviewOf(company);
    return failed === 6 && worst.reduce((sum, each) => sum + each.failed, 0) === 6;
  };
  await eventually('the counts', isCounted, 60_000);
}, 180_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

const read = (api: ApiClient, query = '') => api.get(`/api/v1/overview${query}`);
const overviewOf = async (api: ApiClient, query = '') => dataOf<Overview>(await read(api, query));

describe('The overview', () => {
  it.each([
    ['1h', 60],
    ['24h', 24],
    ['7d', 168],
    ['30d', 30],
  ])('of %s counts attempts in %d steps', async (range, steps) => {
    const overview = await overviewOf(company, `?range=${range}`);
    expect(overview).toMatchObject({
      asOf: aTime,
      accepted: 2,
      delivered: 0,
      failed: 6,
      pending: 0,
      oldestPendingAt: null,
      openCircuits: expect.any(Number),
      latencyMs: { p50: expect.any(Number), p99: expect.any(Number) },
    });
    expect(overview.series).toHaveLength(steps);
    expect(overview.series.reduce((sum, { failed }) => sum + failed, 0)).toBe(6);
    expect(overview.worst.map(({ webhookId }) => webhookId).sort()).toEqual(
      [ours.webhookId, theirs.webhookId].sort(),
    );
    expect(overview.worst[0]).toMatchObject({
      url: expect.stringContaining(receiver.url),
      successRatio: 0,
      failed: 3,
      reason: 'http_5xx',
      since: aTime,
    });
  });

  it('is of one app or one webhook when it is asked for, or when the key is', async () => {
    const { appId, webhookId } = ours;
    const answers = [
      await overviewOf(company, `?appId=${appId}`),
      await overviewOf(company, `?webhookId=${webhookId}`),
      await overviewOf(limited),
    ];
    for (const { failed, worst } of answers) {
      expect([failed, worst.map((each) => each.webhookId)]).toEqual([3, [webhookId]]);
    }
    expectFailure(await read(limited, `?appId=${theirs.appId}`), 404, 'not_found');
    expectFailure(await read(company, `?appId=${unknownLike(appId)}`), 404, 'not_found');
    expectInvalid(await read(company, `?appId=${appId}&webhookId=${webhookId}`), 'appId');
    expectInvalid(await read(company, '?range=2h'), 'range');
  });
});

describe('The failures', () => {
  const list = (api: ApiClient, query = '') => api.get(`/api/v1/failures${query}`);

  it('are grouped by webhook and outcome', async () => {
    const groups = dataOf<{ webhookId: string }[]>(await list(company));
    expect(groups).toHaveLength(2);
    expect(groups).toContainEqual({
      webhookId: ours.webhookId,
      url: `${receiver.url}/ours`,
      appId: ours.appId,
      outcome: 'http_5xx',
      count: 3,
      firstAt: aTime,
      lastAt: aTime,
    });
  });

  it('are of one app when it is asked for, or when the key is', async () => {
    for (const answer of [await list(company, `?appId=${ours.appId}`), await list(limited)]) {
      expect(dataOf<object[]>(answer)).toMatchObject([{ webhookId: ours.webhookId }]);
    }
    expectFailure(await list(limited, `?appId=${theirs.appId}`), 404, 'not_found');
    const later = new Date(Date.now() + 7_200_000).toISOString();
    expect(dataOf<object[]>(await list(company, `?since=${later}`)).length).toBeLessThan(3);
  });
});

describe('The open circuits', () => {
  it('are of one app when it is asked for, and unknown apps are not found', async () => {
    const list = (api: ApiClient, query = '') => api.get(`/api/v1/circuits${query}`);
    expect(dataOf(await list(company, `?appId=${ours.appId}`))).toEqual(expect.any(Array));
    expectFailure(await list(limited, `?appId=${theirs.appId}`), 404, 'not_found');
    expectFailure(await list(company, `?appId=${unknownLike(ours.appId)}`), 404, 'not_found');
  });
});

describe('To find an id', () => {
  const find = (api: ApiClient, id: string) => api.get(`/api/v1/find?id=${id}`);

  it('says what it is of', async () => {
    const { projectId, appId, webhookId, messageId, deliveryId, resendId, keyId } = ours;
    const attemptId = attemptIdOf(deliveryId, 2);
    const expected = [
      { kind: 'project', id: projectId },
      { kind: 'app', id: appId, appId },
      { kind: 'webhook', id: webhookId, appId, webhookId },
      { kind: 'message', id: messageId, appId, messageId },
      { kind: 'delivery', id: deliveryId, appId, messageId, deliveryId, webhookId },
      { kind: 'attempt', id: attemptId, appId, messageId, deliveryId, webhookId },
      { kind: 'resend', id: resendId, webhookId },
      { kind: 'api_key', id: keyId },
    ];
    for (const found of expected) expect(dataOf(await find(company, found.id))).toEqual(found);
  });

  it('finds nothing of others, and nothing that does not exist', async () => {
    const ids = Object.values(theirs);
    const ofOurs = [...Object.values(ours), attemptIdOf(ours.deliveryId, 1)];
    for (const id of [...ids, attemptIdOf(theirs.deliveryId, 1)]) {
      expectFailure(await find(limited, id), 404, 'not_found');
    }
    const unknown = [...ofOurs.map(unknownLike), attemptIdOf(ours.deliveryId, 9), 'x', '_', 'att_'];
    for (const id of unknown) expectFailure(await find(company, id), 404, 'not_found');
  });
});
