import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../../support/api/expect-answers.ts';
import { createApiClient, type ApiClient } from '../../../support/api/api-client.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';

let posthorn: OwnCompany;
let api: ApiClient;

beforeAll(async () => {
  posthorn = await joinShared('contract');
  api = createApiClient(posthorn.baseUrl, posthorn.apiKey, { companyid: posthorn.companyId });
}, 120_000);

afterAll(() => posthorn.stop());

describe('GET /api/v1/source-ips', () => {
  it('shows the ranges of the configuration', async () => {
    const shown = await api.get('/api/v1/source-ips');
    expect(dataOf(shown, 200)).toEqual({ ranges: ['203.0.113.8/32', '2001:db8::/48'] });
  });

  it('needs an API key', async () => {
    const anonymous = createApiClient(posthorn.baseUrl, '');
    expect((await anonymous.get('/api/v1/source-ips')).status).toBe(401);
  });
});
