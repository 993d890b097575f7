import { beforeEach, expect, test } from '@jest/globals';
import type { Link } from '@posthorn/platform/mongo/companies/links/links.ts';
import type { AdminAction } from '../audit/record-admin.ts';
import { createSignInLink, type SignInLinkDeps } from './sign-in-link.ts';

let stored: [token: string, link: Link][];
let recorded: AdminAction[];
let deps: SignInLinkDeps;

beforeEach(() => {
  [stored, recorded] = [[], []];
  deps = {
    companies: { hasCompany: (id) => Promise.resolve(id === 'comp_a') },
    links: { insert: (token, link) => Promise.resolve(void stored.push([token, link])) },
    async record(action, make) {
      recorded.push(action);
      return make();
    },
    nowMs: () => 5_000,
  };
});

test('a sign-in link has its token behind the #, and is recorded without it', async () => {
  const { url, expiresAt } = await createSignInLink(deps, 'comp_a', 'https://a.example/p');
  const [first] = stored;
  const [token, link] = first ?? ['', null];
  expect(url).toBe(`https://a.example/p/dashboard/sign-in#${token}`);
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(link).toEqual({ companyId: 'comp_a', expiresAtMs: 605_000, portal: null });
  expect(expiresAt).toEqual(new Date(605_000));
  expect(recorded).toMatchObject([{ companyId: 'comp_a', action: 'dashboard_link.created' }]);
  expect(JSON.stringify(recorded)).not.toContain(token);
});

test('no link is made for an unknown company', async () => {
  const made = createSignInLink(deps, 'comp_b', 'https://a.example');
  await expect(made).rejects.toThrow('There is no company comp_b.');
  expect([stored, recorded]).toEqual([[], []]);
});
