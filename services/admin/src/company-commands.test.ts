import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Link } from '@posthorn/platform/mongo/companies/links.ts';
import { type AdminAction, parseOptions } from './command.ts';
import {
  createSignInLink,
  monthOption,
  parseKeyRights,
  type SignInLinkDeps,
  usageOptions,
} from './company-commands.ts';

test('the options of a key are scopes, an app and an end', () => {
  const options = {
    scopes: 'read, messages:write',
    app: 'app_1',
    expires: '2026-08-01T09:30:00+02:00',
  };
  expect(parseKeyRights(options)).toEqual({
    scopes: ['read', 'messages:write'],
    appId: 'app_1',
    expiresAtMs: Date.parse('2026-08-01T07:30:00Z'),
  });
});

test('without options nothing is limited', () => {
  expect(Object.values(parseKeyRights({}))).toEqual([undefined, undefined, undefined]);
});

test.each(['', 'read,', 'write', 'read,READ'])('the scopes %j are refused', (scopes) => {
  expect(() => parseKeyRights({ scopes })).toThrow(
    '--scopes must be one or more of messages:write,read,webhooks:write,keys:write,admin.',
  );
});

test('every wrong option is named', () => {
  const problem = /^--scopes must be .*\n--expires must be an ISO time with a zone/;
  expect(() => parseKeyRights({ scopes: 'all', expires: 'tomorrow' })).toThrow(problem);
});

describe('sign in link', () => {
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
});

test('a month is the span from its first millisecond to that of the next one', () => {
  const span = { fromMs: Date.UTC(2026, 11), toMs: Date.UTC(2027, 0) };
  expect(monthOption.parse('2026-12')).toEqual(span);
});

test.each(['2026', '2026-13', '2026-1', 'November'])('refuses %s as a month', (text) => {
  expect(monthOption.safeParse(text).error?.issues[0]?.message).toBe(
    'must be a month such as 2026-11',
  );
});

test('usage is printed as JSON or as CSV', () => {
  const month = '2026-12';
  expect(usageOptions.parse({ month, csv: true })).toMatchObject({ json: false, csv: true });
  expect(() => parseOptions(usageOptions, { month, csv: true, json: true })).toThrow(
    '--csv cannot be used with --json.',
  );
});
