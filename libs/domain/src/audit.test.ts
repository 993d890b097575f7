import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { sampleWebhook } from '../../../test/support/samples/sample-webhook.ts';
import { changesBetween } from './audit.ts';
import { auditedFields } from './webhook-fields.ts';
import type { AuthMethod, Webhook } from './webhook.ts';

const MASK = '********';

describe('the changes that the audit log shows', () => {
  test('are the fields that differ, with their values before and after', () => {
    const before = { name: 'Old', disabled: false, eventTypes: ['a'], description: null };
    const after = { name: 'New', disabled: false, eventTypes: ['a', 'b'], rateLimitPerSecond: 5 };
    expect(changesBetween(before, after)).toEqual([
      { field: 'name', before: 'Old', after: 'New' },
      { field: 'eventTypes', before: ['a'], after: ['a', 'b'] },
      { field: 'rateLimitPerSecond', before: null, after: 5 },
    ]);
    expect(changesBetween(before, { ...before })).toEqual([]);
  });

  test('have times as text', () => {
    const expiresAt = new Date('2026-01-31T09:30:00.000Z');
    expect(changesBetween({}, { expiresAt })).toEqual([
      { field: 'expiresAt', before: null, after: '2026-01-31T09:30:00.000Z' },
    ]);
  });

  test('have the roles of groups in the form of the admin command', () => {
    const before = { groups: [] };
    const after = { groups: [{ group: 'helpdesk', role: 'support' }] };
    expect(changesBetween(before, after)).toEqual([
      { field: 'groups', before: [], after: ['helpdesk=support'] },
    ]);
  });

  test('say of a field that the log does not know only that it changed', () => {
    expect(changesBetween({ laterField: { a: 1 } }, { laterField: { a: 2 } })).toEqual([
      { field: 'laterField', before: MASK, after: MASK },
    ]);
  });

  test('say of custom headers only which one was added, changed and removed', () => {
    const header = (key: string, value: string) => ({ key, value });
    const before = { customHeaders: [header('A', '1'), header('B', '2'), header('C', '3')] };
    const after = { customHeaders: [header('B', 'two'), header('C', '3'), header('D', '4')] };
    expect(changesBetween(before, after)).toEqual([
      { field: 'customHeaders.A', before: MASK, after: null },
      { field: 'customHeaders.B', before: MASK, after: MASK },
      { field: 'customHeaders.D', before: null, after: MASK },
    ]);
  });

  test('say of a secret whether the request gave it, and never show it [security]', () => {
    const changes = (given: Record<string, unknown>) =>
      changesBetween({ secret: 'old' }, { secret: 'new' }, given);
    expect(changes({ secret: 'new' })).toEqual([
      { field: 'secret', before: MASK, after: 'client-chosen' },
    ]);
    expect(changes({ graceSeconds: 0 })).toEqual([{ field: 'secret', before: MASK, after: MASK }]);
    expect(changesBetween({}, { secret: 'new' }, { secret: 'new' })).toEqual([
      { field: 'secret', before: null, after: 'client-chosen' },
    ]);
    const same = { secret: 'old' };
    expect(changesBetween(same, same, same)).toEqual([]);
  });

  test.each([
    ['https://a.b/c?token=hush&user=hush', `https://a.b/c?token=${MASK}&user=${MASK}`],
    ['https://a.b/c?hush', `https://a.b/c?${MASK}`],
    ['https://a.b/c?a=hush?b=hush=hush', `https://a.b/c?a=${MASK}`],
    ['https://a.b/c', 'https://a.b/c'],
  ])('show the URL %s as %s', (url, shown) => {
    expect(changesBetween({}, { url })).toEqual([{ field: 'url', before: null, after: shown }]);
  });
});

const OAUTH2 = {
  method: 'oauth2' as const,
  tokenUrl: 'https://login.example.com/token?tenant=hush',
  clientId: 'posthorn',
  clientSecret: 'hush',
  scope: 'orders',
  audience: null,
  clientAuthentication: 'basic' as const,
};

test('the changes of a webhook with OAuth 2.0 show all but the secret and the query of the token server', () => {
  const fields = auditedFields(sampleWebhook(1, { authMethod: OAUTH2 }));
  expect(changesBetween({}, fields)).toEqual(
    expect.arrayContaining([
      { field: 'authMethod', before: null, after: 'oauth2' },
      {
        field: 'oauth2TokenUrl',
        before: null,
        after: `https://login.example.com/token?tenant=${MASK}`,
      },
      { field: 'oauth2ClientId', before: null, after: 'posthorn' },
      { field: 'oauth2ClientSecret', before: null, after: MASK },
      { field: 'oauth2Scope', before: null, after: 'orders' },
      { field: 'oauth2ClientAuthentication', before: null, after: 'basic' },
    ]),
  );
});

/** Never part of a name that the log shows. */
const secret = fc.string({ minLength: 8, maxLength: 40 }).map((text) => `hush${text}hush`);
const authMethod: fc.Arbitrary<AuthMethod> = fc.oneof(
  secret.map((hmacSecret) => ({ method: 'hmac' as const, hmacHeader: 'X-S', hmacSecret })),
  secret.map((text) => ({ method: 'basic' as const, username: text, password: text })),
  secret.map((apiKey) => ({ method: 'api_key' as const, apiKeyHeader: 'X-K', apiKey })),
  secret.map((clientSecret) => ({
    ...OAUTH2,
    tokenUrl: `https://example.com/token?key=${encodeURIComponent(clientSecret)}`,
    clientSecret,
  })),
);
const webhook: fc.Arbitrary<Webhook> = fc
  .record({
    secret,
    authMethod,
    url: secret.map((text) => `https://example.com/?key=${encodeURIComponent(text)}`),
    customHeaders: fc.array(fc.record({ key: fc.constantFrom('X-A', 'Auth'), value: secret })),
    previousSecret: fc.record({ secret, expiresAtMs: fc.nat() }),
  })
  .map((fields) => sampleWebhook(1, fields));

test('no secret of a webhook is in the changes between any two of its states', () => {
  fc.assert(
    fc.property(fc.option(webhook), fc.option(webhook), (before, after) => {
      const fields = [before, after].map((each) => (each ? auditedFields(each) : {}));
      const changes = changesBetween(fields[0] ?? {}, fields[1] ?? {});
      expect(JSON.stringify(changes)).not.toContain('hush');
      const names = changes.map(({ field }) => field);
      if (before && after && before.secret !== after.secret) expect(names).toContain('secret');
    }),
  );
});
