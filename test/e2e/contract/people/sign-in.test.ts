import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { aTime, anId, dataOf } from '../../../support/api/expect-answers.ts';
import { readAuditEvents } from '../../../support/api/audit-events.ts';
import { SESSION } from '../../../support/api/session-client.ts';
import {
  type CompanyWithIssuer,
  joinWithIssuer,
} from '../../../support/people/join-with-issuer.ts';

describe('People who sign in at the issuer', () => {
  let posthorn: CompanyWithIssuer;

  beforeAll(async () => {
    posthorn = await joinWithIssuer('tpeople:');
    const groups = [
      { group: 'sign-in-platform', role: 'admin' },
      { group: 'sign-in-helpdesk', role: 'support' },
      { group: 'sign-in-all', role: 'viewer' },
    ];
    dataOf(await posthorn.api.put('/api/v1/people-settings', { groups }));
  }, 120_000);

  afterAll(() => posthorn.stop());

  it('enter the company that names one of their groups, with the highest role', async () => {
    const browser = posthorn.browser();
    const claims = {
      name: 'Ada',
      email: 'ada@example.com',
      groups: ['sign-in-all', 'sign-in-platform'],
    };
    const to = '/dashboard/webhooks?status=failing';
    expect(await browser.signIn({ sub: 'ada', claims }, { to })).toBe(to);
    expect(browser.cookies.size).toBe(1);
    const session = dataOf<{ person: { id: string } }>(await browser.api.get(SESSION));
    expect(session).toMatchObject({
      kind: 'company',
      company: { id: posthorn.companyId, name: 'Test' },
      person: { id: anId('usr'), name: 'Ada', role: 'admin' },
      companies: [{ id: posthorn.companyId, name: 'Test', role: 'admin' }],
      expiresAt: aTime,
    });
    const { id } = session.person;
    const me = dataOf(await browser.api.get('/api/v1/me'));
    expect(me).toMatchObject({ person: { id, name: 'Ada', role: 'admin' }, scopes: ['admin'] });
    const events = await readAuditEvents(posthorn.api, { actor: id });
    expect(events).toMatchObject([
      {
        action: 'person.signed_in',
        actor: { kind: 'person', personId: id, name: 'Ada' },
        target: { kind: 'person', id },
        outcome: 'done',
      },
    ]);
  });
});
