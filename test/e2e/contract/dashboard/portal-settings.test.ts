import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { dataOf, expectInvalid } from '../../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';
import { eventually } from '../../../support/time/eventually.ts';

const SETTINGS = '/api/v1/portal-settings';

let posthorn: OwnCompany;

beforeAll(async () => {
  posthorn = await joinShared('contract');
}, 120_000);

afterAll(() => posthorn.stop(), 60_000);

describe('The settings of the portal', () => {
  it('say whose pages may frame it', async () => {
    expect(dataOf(await posthorn.api.get(SETTINGS))).toEqual({ origins: [] });
    const origins = ['https://app.example.com', 'http://localhost:3000'];
    expect(dataOf(await posthorn.api.put(SETTINGS, { origins }))).toEqual({ origins });
    expect(dataOf(await posthorn.api.get(SETTINGS))).toEqual({ origins });
    const { baseUrl, companyId } = posthorn;
    await eventually('the header', async () => {
      const page = await fetch(`${baseUrl}/dashboard/portal/${companyId}`);
      const policy = page.headers.get('content-security-policy') ?? '';
      return policy.endsWith(`frame-ancestors ${origins.join(' ')}`);
    });
    const page = await fetch(`${baseUrl}/dashboard`);
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  });

  it.each([
    'http://app.example.com',
    'https://app.example.com/',
    'https://app.example.com/path',
    "https://a.example; script-src 'unsafe-inline'",
    'https://a.example,b',
    'https://*.example.com',
    "'self'",
    '*',
    '',
  ])('refuse the origin %s', async (origin) => {
    expectInvalid(await posthorn.api.put(SETTINGS, { origins: [origin] }), 'origins.0');
  });
});
