import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiAnswer } from '../../../support/api/api-client.ts';
import { joinWithGateway, type OwnGateway } from '../../../support/process/shared-posthorn.ts';
import { runProgram } from '../../../support/process/service-process.ts';

/** As long as a real key, so that only its bytes are wrong. */
const UNKNOWN_KEY = `phk_${'x'.repeat(43)}`;
const PER_MINUTE = 100;

describe('Wrong API keys [security]', () => {
  let posthorn: OwnGateway;

  beforeAll(async () => {
    posthorn = await joinWithGateway('contract', { REDIS_PREFIX: 'twrong-keys:' });
  }, 120_000);

  afterAll(() => posthorn.stop(), 60_000);

  function call(headers: Record<string, string>, query = ''): Promise<ApiAnswer> {
    return posthorn.api.request('GET', `/webhooks${query}`, undefined, headers);
  }

  async function makeRevokedKey(): Promise<string> {
    const admin = async (...args: string[]) => {
      const printed = await runProgram('services/admin/src/main.ts', args, posthorn.env);
      return JSON.parse(printed) as { keyId: string; apiKey: string };
    };
    const { keyId, apiKey } = await admin('key', 'create', posthorn.companyId, '--json');
    await admin('key', 'revoke', keyId, '--json');
    return apiKey;
  }

  it('get the same 401, whether missing, malformed, unknown, revoked or in the query', async () => {
    const answers = await Promise.all([
      call({ 'x-api-key': '' }),
      call({ 'x-api-key': 'x' }),
      call({ 'x-api-key': UNKNOWN_KEY }),
      call({ 'x-api-key': `${posthorn.apiKey}x` }),
      call({ 'x-api-key': await makeRevokedKey() }),
      call({ 'x-api-key': '' }, `?x-api-key=${posthorn.apiKey}`),
      call({ 'x-api-key': '', authorization: `Bearer ${posthorn.apiKey}` }),
    ]);
    for (const { status, body } of answers) {
      expect(status).toBe(401);
      expect(body).toEqual({
        success: false,
        message: 'Send a valid API key in the header x-api-key.',
        code: 'unauthorized',
        requestId: expect.any(String),
      });
    }
  });

  it('are refused with 429 after a hundred, while a valid key from the same address works', async () => {
    const statuses: number[] = [];
    let last: ApiAnswer | undefined;
    while (statuses.length < 2 * PER_MINUTE && last?.status !== 429) {
      last = await call({ 'x-api-key': `${UNKNOWN_KEY}${statuses.length}` });
      statuses.push(last.status);
    }
    expect(last?.status).toBe(429);
    expect(last?.body.code).toBe('too_many_wrong_keys');
    expect(Number(last?.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(statuses.slice(0, -1).every((status) => status === 401)).toBe(true);
    expect((await call({ 'x-api-key': '' })).status).toBe(429);

    const valid = await call({});
    expect(valid.status).toBe(200);
    expect(valid.headers.get('ratelimit')).toMatch(/^"(company|address)";r=299\d{3};t=\d+$/);
  });

  it('are counted, and neither wrong nor valid keys are logged', async () => {
    const metrics = await (await fetch(`${posthorn.gateway.opsUrl}/metrics`)).text();
    const decisions = 'posthorn_rate_limit_decisions_total';
    expect(metrics).toMatch(
      new RegExp(`${decisions}\\{scope="wrong_keys",outcome="allowed"\\} \\d{3}`),
    );
    expect(metrics).toMatch(
      new RegExp(`${decisions}\\{scope="wrong_keys",outcome="refused"\\} [1-9]`),
    );
    const output = posthorn.gateway.output();
    for (const key of [posthorn.apiKey, UNKNOWN_KEY]) expect(output).not.toContain(key);
  });
});
