import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiClient } from '../../support/api/api-client.ts';
import { withCompanyId } from '../../support/process/companies.ts';
import { dataOf, expectDeleted, expectFailure } from '../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';

const WEBHOOK_URL = 'https://example.com/hook';

let posthorn: OwnCompany;
let api: ApiClient;

beforeAll(async () => {
  posthorn = await joinShared('contract');
  api = withCompanyId(posthorn);
}, 120_000);

afterAll(() => posthorn.stop(), 60_000);

interface Made {
  id: string;
}

describe('Versioning', () => {
  it.each(['', '/api/v1'])('serves every resource under "%s" (C1.1)', async (prefix) => {
    const create = async (path: string, body: object, status = 201): Promise<string> =>
      dataOf<Made>(await api.post(prefix + path, body), status).id;
    const projectId = await create('/projects', { name: 'Project' });
    const appId = await create('/apps', { name: 'App', projectId });
    const webhookId = await create('/webhooks', { url: WEBHOOK_URL, appId, disabled: true });
    await create('/webhook-messages', { webhookId, payload: {} }, 202);
    const one = [`/webhooks/${webhookId}`, `/apps/${appId}`, `/projects/${projectId}`];
    for (const path of one) {
      expect(dataOf<Made>(await api.get(prefix + path)).id).toBe(path.split('/')[2]);
      expect(dataOf(await api.put(prefix + path, { name: 'New' }))).toMatchObject({ name: 'New' });
    }
    for (const path of ['/projects', `/apps?projectId=${projectId}`, `/webhooks?appId=${appId}`]) {
      expect(dataOf<Made[]>(await api.get(prefix + path)).length).toBeGreaterThan(0);
    }
    for (const path of one) expectDeleted(await api.delete(prefix + path));
  });

  it.each([
    ['GET', '/webhook-messages/msg_1'],
    ['GET', '/webhook-messages/msg_1/deliveries'],
    ['GET', '/deliveries/dlv_1'],
    ['POST', '/deliveries/dlv_1/resend'],
    ['POST', '/webhooks/wh_1/resend-failed'],
    ['POST', '/apps/app_1/resend-failed'],
    ['POST', '/webhooks/wh_1/test'],
    ['POST', '/webhooks/wh_1/rotate-secret'],
    ['GET', '/webhooks/wh_1/health'],
    ['GET', '/resends/rsnd_1'],
    ['GET', '/api-keys'],
    ['POST', '/api-keys'],
    ['DELETE', '/api-keys/key_1'],
  ])('%s %s is served under /api/v1 only (C1.3)', async (method, path) => {
    const body = method === 'POST' ? {} : undefined;
    expectFailure(await api.request(method, path, body), 404, 'route_not_found');
    const answer = await api.request(method, `/api/v1${path}`, body);
    expect(answer.body.code).not.toBe('route_not_found');
    expect(answer.status).toBeLessThan(500);
  });

  it('GET /webhook-messages is served under /api/v1 only; without it, only POST is (C1.3)', async () => {
    expectFailure(await api.get('/webhook-messages'), 405, 'method_not_allowed');
    dataOf(await api.get('/api/v1/webhook-messages'));
  });

  it.each(['/PROJECTS', '/projects/', '/Api/v1/projects', '/api/v1/projects/'])(
    'returns 404 for %s: paths match exactly (C1.4)',
    async (path) => {
      expectFailure(await api.get(path), 404, 'route_not_found');
    },
  );
});
