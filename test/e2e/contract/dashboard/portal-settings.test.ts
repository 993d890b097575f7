import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createResources } from '../../../support/api/resources.ts';
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
    'https://a.example:65536',
    'http://localhost:99999',
    "'self'",
    '*',
    '',
  ])('refuse the origin %s', async (origin) => {
    expectInvalid(await posthorn.api.put(SETTINGS, { origins: [origin] }), 'origins.0');
  });

  it('say of which origins the logo of a link may be', async () => {
    const { id } = await createResources(posthorn.api).app();
    const askLink = (logoUrl: string) => {
      const body = { expiresInSeconds: 60, capabilities: ['view'], theme: { logoUrl } };
      return posthorn.api.post(`/api/v1/apps/${id}/portal-links`, body);
    };
    const far = 'https://cdn.example.com:65535';
    const origins = ['https://cdn.example.com:443', far];
    dataOf(await posthorn.api.put(SETTINGS, { origins }));
    for (const logo of ['https://cdn.example.com/a.png', `${far}/a.png`, DATA_LOGO]) {
      dataOf(await askLink(logo), 201);
    }
    const refused = await askLink('https://other.example.com/a.png');
    expectInvalid(refused, 'theme.logoUrl');
    expect(refused.body.message).toContain('origins of the portal settings');
    dataOf(await posthorn.api.put(SETTINGS, { origins: [] }));
    expectInvalid(await askLink('https://cdn.example.com/a.png'), 'theme.logoUrl');
  });
});

const DATA_LOGO = 'data:image/svg+xml;base64,PHN2Zy8+';
