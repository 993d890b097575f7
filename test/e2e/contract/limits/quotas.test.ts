import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { dataOf, expectFailure } from '../../../support/api/expect-answers.ts';
import {
  createResources,
  type Resources,
  type ShownWebhook,
} from '../../../support/api/resources.ts';
import { joinWithGateway, type OwnGateway } from '../../../support/process/shared-posthorn.ts';

const QUOTAS = {
  QUOTA_PROJECTS_PER_COMPANY: '2',
  QUOTA_APPS_PER_COMPANY: '3',
  QUOTA_WEBHOOKS_PER_APP: '120',
  QUOTA_GLOBAL_WEBHOOKS_PER_PROJECT: '1',
  // One is the test's own.
  QUOTA_KEYS_PER_COMPANY: '2',
  QUOTA_TARGETS_PER_MESSAGE: '119',
};

let posthorn: OwnGateway;
let make: Resources;

beforeAll(async () => {
  posthorn = await joinWithGateway('contract', QUOTAS);
  make = createResources(posthorn.api);
}, 120_000);

afterAll(() => posthorn.stop(), 60_000);

async function expectRefused(path: string, body: object, setting: keyof typeof QUOTAS) {
  const message = await refusalOf(path, body);
  expect(message).toContain(`The limit is ${QUOTAS[setting]} `);
  expect(message).toContain(`(${setting})`);
}

async function refusalOf(path: string, body: object): Promise<unknown> {
  const answer = await posthorn.api.post(path, body);
  expectFailure(answer, 409, 'quota_exceeded');
  return answer.body.message;
}

/** The widest that a webhook may have: 8,192 bytes with the names. */
const WIDEST = [
  { key: 'X-Wide-1', value: 'v'.repeat(4_088) },
  { key: 'X-Wide-2', value: 'v'.repeat(4_088) },
];
const url = 'http://127.0.0.1:1/hook';

describe('Quotas [security]', () => {
  let projectId: string;
  let appId: string;
  let webhooks: ShownWebhook[];

  beforeAll(async () => {
    ({ id: projectId } = await make.project());
    await make.project();
    ({ id: appId } = await make.app({ projectId }));
    webhooks = [];
    while (webhooks.length < 120) {
      const several = Array.from({ length: 10 }, () =>
        make.webhook({ appId, url, customHeaders: WIDEST }),
      );
      webhooks.push(...(await Promise.all(several)));
    }
  }, 60_000);

  it('refuse one more project, app, API key, webhook and global webhook', async () => {
    await expectRefused('/projects', { name: 'One more' }, 'QUOTA_PROJECTS_PER_COMPANY');
    await make.app({ projectId });
    await make.app({ projectId });
    await expectRefused('/apps', { name: 'One more', projectId }, 'QUOTA_APPS_PER_COMPANY');
    await posthorn.api.post('/api/v1/api-keys', { name: 'Second' });
    await expectRefused('/api/v1/api-keys', { name: 'Third' }, 'QUOTA_KEYS_PER_COMPANY');
    await expectRefused('/webhooks', { appId, url }, 'QUOTA_WEBHOOKS_PER_APP');
    const global = { projectId, environmentId: 'live', url };
    await make.webhook(global);
    await expectRefused('/webhooks', global, 'QUOTA_GLOBAL_WEBHOOKS_PER_PROJECT');
  });

  it('refuse one more link to the portal of an app, until one is revoked', async () => {
    const path = `/api/v1/apps/${appId}/portal-links`;
    const link = { expiresInSeconds: 600, capabilities: ['view'] };
    const first = dataOf<{ id: string }>(await posthorn.api.post(path, link), 201);
    for (let made = 1; made < 1_000; made += 27) {
      const some = Array.from({ length: 27 }, () => posthorn.api.post(path, link));
      for (const answer of await Promise.all(some)) dataOf(answer, 201);
    }
    expect(await refusalOf(path, link)).toBe('The limit is 1000 links to its portal for each app.');
    dataOf(await posthorn.api.delete(`/api/v1/portal-links/${first.id}`));
    dataOf(await posthorn.api.post(path, link), 201);
  });

  it('refuse a message to more webhooks than it may have, until one is removed', async () => {
    const message = { appId, payload: {} };
    await expectRefused('/webhook-messages', message, 'QUOTA_TARGETS_PER_MESSAGE');
    const [first, ...others] = webhooks;
    await posthorn.api.delete(`/webhooks/${first?.id ?? ''}`);
    const { deliveries, headers } = await make.message(message);
    expect(deliveries.map(({ webhookId }) => webhookId)).toEqual(others.map(({ id }) => id).sort());
    expect(headers).toEqual(expect.arrayContaining(WIDEST));
    webhooks = others;
    expect(await make.webhook({ appId, url })).toMatchObject({ url });
  });

  it('refuse a byte more of custom headers, at creation and in a change', async () => {
    const [webhook] = webhooks;
    const [wide] = WIDEST;
    const customHeaders = [...WIDEST.slice(1), { key: 'X-Wide-1b', value: wide?.value }];
    const put = await posthorn.api.put(`/webhooks/${webhook?.id ?? ''}`, { customHeaders });
    expectFailure(put, 409, 'quota_exceeded');
    const post = { projectId, environmentId: 'live', url, customHeaders };
    expect(await refusalOf('/webhooks', post)).toBe(
      'The limit is 8192 bytes of custom headers for each webhook.',
    );
  });

  it('leave a list of the widest webhooks whole and in order', async () => {
    const listed = dataOf<ShownWebhook[]>(await posthorn.api.get(`/webhooks?appId=${appId}`));
    expect(listed.length).toBe(120);
    const ids = listed.map(({ id }) => id);
    expect(ids).toEqual([...ids].sort());
    expect(listed.slice(0, 119).every(({ customHeaders }) => customHeaders.length === 2)).toBe(
      true,
    );
  });
});
