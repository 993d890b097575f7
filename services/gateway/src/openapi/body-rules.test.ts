import { describe, expect, test } from '@jest/globals';
import type { AuthMethod } from '@posthorn/domain/webhook.ts';
import fc from 'fast-check';
import {
  type ApiDocument,
  createCompiler,
  operationsOf,
} from '../../../../test/support/api/api-document.ts';
import {
  bodiesOf,
  changes,
  description,
  environment,
  graceSeconds,
  id,
  messageFields,
  name,
  ownFields,
  payload,
  secret,
  storage,
  time,
  webhookFields,
} from '../../../../test/support/api/generated-bodies.ts';
import { routeTable } from '../../../../test/support/api/route-table.ts';
import { OAUTH2, sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { NO_FIELDS } from '../http/route.ts';
import { changesOf, type UpdateWebhookBody } from '../routes/webhook-body.ts';
import { createDocument } from './document.ts';

const routes = routeTable();
const document = JSON.parse(JSON.stringify(createDocument(routes))) as ApiDocument;
const compile = createCompiler(document);

interface Verdicts {
  gateway: boolean;
  document: boolean;
}

/** Returns whether the gateway accepts a body, and whether the document does. */
function verdictsOn(id: string): (body: object) => Verdicts {
  const schema = routes.find(({ operationId }) => operationId === id)?.body ?? NO_FIELDS;
  const documented = operationsOf(document).find((operation) => operation.id === id);
  const check = compile(documented?.body?.schema ?? {});
  const isAccepted = (body: object): boolean => {
    const { success, data } = schema.strict().safeParse(body);
    return success && (id !== 'updateWebhook' || fitsSomeWebhook(data));
  };
  return (body) => ({ gateway: isAccepted(body), document: check(body) });
}

const AUTH_METHODS: AuthMethod[] = [
  { method: 'hmac', hmacHeader: 'X-Before', hmacSecret: 's' },
  { method: 'basic', username: 'u', password: 'p' },
  { method: 'api_key', apiKey: 'k', apiKeyHeader: 'X-Before' },
  OAUTH2,
];

/** The document does not know the stored webhook: it may refuse only what no webhook accepts. */
function fitsSomeWebhook(body: UpdateWebhookBody): boolean {
  return AUTH_METHODS.some((authMethod) => {
    const webhook = sampleWebhook(1, { authMethod, customHeaders: [] });
    try {
      changesOf(webhook, body, { seesSecrets: true });
      return true;
    } catch {
      return false;
    }
  });
}

const AUTHS = [
  { authMethod: 'basic', basicAuthUsername: 'u', basicAuthPassword: 'p' },
  { authMethod: 'apiKey', apiKey: 'k', apiKeyHeader: 'X-Key' },
  { authMethod: 'hmac', hmacHeader: 'X-Sig', hmacSecret: 's' },
  {
    authMethod: 'oauth2',
    oauth2TokenUrl: 'https://login.example.com/token',
    oauth2ClientId: 'c',
    oauth2ClientSecret: 's',
  },
  { authMethod: 'hmac', signatureAlgorithm: 'ed25519' },
];
const OWNED = { url: 'https://example.com', appId: 'app_1' };
const GLOBAL = { url: 'https://example.com', projectId: 'proj_1', environmentId: 'live' };

describe('the document and the gateway agree on', () => {
  test.each<[string, fc.Arbitrary<object>]>([
    ['createProject', bodiesOf({ name, description, environment, ...ownFields }, [{ name: 'a' }])],
    ['updateProject', bodiesOf({ name, description, ...ownFields }, [{}])],
    [
      'createApp',
      bodiesOf({ name, description, environment, ...storage, ...ownFields, projectId: id }, [
        { name: 'a', projectId: 'p' },
      ]),
    ],
    ['updateApp', bodiesOf({ name, description, ...storage, ...ownFields }, [{}])],
    [
      'createWebhook',
      bodiesOf(webhookFields, [OWNED, GLOBAL, ...AUTHS.map((auth) => ({ ...OWNED, ...auth }))]),
    ],
    ['updateWebhook', bodiesOf(changes, [{}, ...AUTHS])],
    ['rotateWebhookSecret', bodiesOf({ graceSeconds, secret }, [{}])],
    ['startWebhookResend', bodiesOf({ since: time }, [{ since: '2026-01-31T09:30:00Z' }])],
    ['startAppResend', bodiesOf({ since: time }, [{ since: '2026-01-31T09:30:00Z' }])],
    [
      'createMessage',
      bodiesOf({ appId: id, webhookId: id, payload, ...messageFields }, [
        { appId: 'app_1', payload: {} },
        { webhookId: 'wh_1', payload: {} },
      ]),
    ],
    ['testWebhook', bodiesOf({}, [{}])],
    ['createApiKey', bodiesOf({ name }, [{ name: 'a' }])],
  ])('every body of %s', (operationId, bodies) => {
    const verdictsOf = verdictsOn(operationId);
    const counts = { yes: 0, no: 0 };
    fc.assert(
      fc.property(bodies, (body) => {
        const verdicts = verdictsOf(body);
        counts[verdicts.gateway ? 'yes' : 'no'] += 1;
        expect(verdicts.document).toBe(verdicts.gateway);
      }),
      { numRuns: 1_000 },
    );
    expect(Math.min(counts.yes, counts.no)).toBeGreaterThan(50);
  });
});

describe('the document and the gateway refuse', () => {
  const BOTH_ACCEPT: Verdicts = { gateway: true, document: true };
  const BOTH_REFUSE: Verdicts = { gateway: false, document: false };
  const onLink = verdictsOn('createPortalLink');
  const onSettings = verdictsOn('updatePortalSettings');

  test.each<object>([
    { path: 'webhooks' },
    { path: '//evil.example' },
    { path: '/a#b' },
    { theme: { primaryColor: 'red; x' } },
    { theme: { logoUrl: 'javascript:alert(1)' } },
    { theme: { logoUrl: 'data:text/html;base64,AAAA' } },
    { theme: { other: 1 } },
  ])('a link to the portal with %j', (fields) => {
    const link = { expiresInSeconds: 60, capabilities: ['view'] };
    expect(onLink(link)).toEqual(BOTH_ACCEPT);
    expect(onLink({ ...link, ...fields })).toEqual(BOTH_REFUSE);
  });

  test.each([
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
  ])('the origin %j of the portal', (origin) => {
    const origins = ['https://app.example.com', 'http://localhost:3000'];
    expect(onSettings({ origins })).toEqual(BOTH_ACCEPT);
    expect(onSettings({ origins: [...origins, origin] })).toEqual(BOTH_REFUSE);
  });
});
