import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { freePorts } from '../../../../tools/local-stack/machine/ports.ts';
import { createApiClient, type ApiAnswer } from '../../../support/api/api-client.ts';
import { joinWithGateway, type OwnGateway } from '../../../support/process/shared-posthorn.ts';
import { createCompany } from '../../../support/process/companies.ts';

const COMPANY_LIMIT = 20;
const ADDRESS_LIMIT = 30;

describe('Rate limits while Redis cannot be reached [security]', () => {
  let posthorn: OwnGateway;

  beforeAll(async () => {
    const [closedPort = 0] = await freePorts(1);
    posthorn = await joinWithGateway('contract', {
      REDIS_URL: `rediss://127.0.0.1:${closedPort}`,
      RATE_LIMIT_COMPANY_PER_MINUTE: String(COMPANY_LIMIT),
      RATE_LIMIT_ADDRESS_PER_MINUTE: String(ADDRESS_LIMIT),
      TRUSTED_PROXIES: '1',
    });
  }, 120_000);

  afterAll(() => posthorn.stop(), 60_000);

  /** Sends requests until one is refused, at most twice the limit; returns all responses. */
  async function exhaust(limit: number, send: () => Promise<ApiAnswer>): Promise<ApiAnswer[]> {
    const answers: ApiAnswer[] = [];
    while (answers.length < 2 * limit && answers.at(-1)?.status !== 429) answers.push(await send());
    return answers;
  }

  const from = (address: string, headers: Record<string, string> = {}) =>
    posthorn.api.request('GET', '/webhooks', undefined, {
      'x-forwarded-for': address,
      ...headers,
    });

  it('count all requests of a company, whatever address they come from, and none of another company', async () => {
    let n = 0;
    const answers = await exhaust(COMPANY_LIMIT, () => from(`192.0.2.${(n += 1)}`));
    const last = answers.at(-1);
    expect(answers.length).toBeGreaterThan(COMPANY_LIMIT);
    expect(last?.status).toBe(429);
    expect(last?.body).toMatchObject({ success: false, code: 'rate_limited' });
    expect(last?.headers.get('ratelimit-policy')).toBe(`"company";q=${COMPANY_LIMIT};w=60`);
    expect(last?.headers.get('ratelimit')).toMatch(/^"company";r=0;t=\d+$/);
    expect(last?.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);

    const { apiKey } = await createCompany(posthorn, 'Other');
    const other = await createApiClient(posthorn.baseUrl, apiKey).get('/webhooks');
    expect(other.status).toBe(200);
    expect(other.headers.get('ratelimit')).toBe(
      `"company";r=${COMPANY_LIMIT - 1};t=${/t=(\d+)/.exec(other.headers.get('ratelimit') ?? '')?.[1] ?? ''}`,
    );
  });

  it('count the requests of an address before its key is checked, and trust one proxy only', async () => {
    const wrong = { 'x-api-key': 'wrong' };
    // What the client itself wrote stands further left. The proxy writes its port, which is another one each time.
    let n = 0;
    const send = () => from(`203.0.113.${(n += 1)}, 198.51.100.1:${40_000 + n}`, wrong);
    const answers = await exhaust(ADDRESS_LIMIT, send);
    expect(answers.length).toBeGreaterThan(ADDRESS_LIMIT);
    expect(answers.at(-1)?.body.code).toBe('rate_limited');
    expect(answers.slice(0, -1).every(({ status }) => status === 401)).toBe(true);
    expect((await from('198.51.100.2:40001', wrong)).status).toBe(401);
  });
});
