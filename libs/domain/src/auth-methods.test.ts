import { describe, expect, test } from '@jest/globals';
import { OAUTH2 } from '../../../test/support/samples/sample-webhook.ts';
import type { AuthMethod } from './auth-methods.ts';
import {
  authHeaderOf,
  authMethodOf,
  type AuthFields,
  type ChangedAuthFields,
  withAuthDefaults,
} from './auth-methods.ts';

const BASIC: AuthMethod = { method: 'basic', username: 'u', password: 'p' };
const API_KEY: AuthMethod = { method: 'api_key', apiKey: 'k', apiKeyHeader: 'X-Key' };
const OAUTH2_FIELDS = {
  authMethod: 'oauth2',
  oauth2TokenUrl: 'https://login.example.com/token',
  oauth2ClientId: 'c',
  oauth2ClientSecret: 's',
} as const;
const HMAC: AuthMethod = { method: 'hmac', hmacHeader: 'X-Sig', hmacSecret: 'own' };
const ED25519: AuthMethod = { ...HMAC, signatureAlgorithm: 'ed25519' };
const DEFAULT: AuthMethod = {
  method: 'hmac',
  hmacHeader: 'X-Service-Signature',
  hmacSecret: 'whsec_x',
};

describe('the method of authentication of a webhook', () => {
  test.each<[AuthFields, AuthMethod | undefined, AuthMethod]>([
    [{}, undefined, DEFAULT],
    [{ hmacHeader: 'X-Sig', hmacSecret: 'own' }, undefined, HMAC],
    [{ authMethod: 'basic', basicAuthUsername: 'u', basicAuthPassword: 'p' }, undefined, BASIC],
    [{ authMethod: 'apiKey', apiKey: 'k', apiKeyHeader: 'X-Key' }, undefined, API_KEY],
    [{}, API_KEY, API_KEY],
    [{ basicAuthPassword: 'new' }, BASIC, { ...BASIC, password: 'new' }],
    [{ hmacSecret: 'new' }, HMAC, { ...HMAC, hmacSecret: 'new' }],
    [{ authMethod: 'hmac' }, BASIC, DEFAULT],
    [{ signatureAlgorithm: 'hmac-sha256' }, undefined, DEFAULT],
    [{ signatureAlgorithm: 'ed25519' }, HMAC, ED25519],
    [{}, ED25519, ED25519],
    [OAUTH2_FIELDS, undefined, OAUTH2],
    [OAUTH2_FIELDS, BASIC, OAUTH2],
    [{ oauth2Scope: 'a b' }, OAUTH2, { ...OAUTH2, scope: 'a b' }],
    [{ oauth2Audience: 'x' }, { ...OAUTH2, scope: 'a' }, { ...OAUTH2, scope: 'a', audience: 'x' }],
    [{ oauth2Scope: null }, { ...OAUTH2, scope: 'a' }, OAUTH2],
    [
      { oauth2ClientAuthentication: 'post', oauth2ClientSecret: 'new' },
      OAUTH2,
      { ...OAUTH2, clientAuthentication: 'post', clientSecret: 'new' },
    ],
    [{ signatureAlgorithm: 'hmac-sha256' }, ED25519, HMAC],
  ])('given %j for a webhook with %j is %j', (fields, before, expected) => {
    expect(authMethodOf(fields, before, 'whsec_x')).toEqual(expected);
  });

  test.each<[AuthFields, AuthMethod | undefined]>([
    [{ authMethod: 'basic', basicAuthUsername: 'u' }, undefined],
    [{ authMethod: 'apiKey', apiKey: 'k' }, BASIC],
    [{ ...OAUTH2_FIELDS, oauth2ClientSecret: undefined }, HMAC],
  ])('throws when a credential is missing: %j for %j', (fields, before) => {
    expect(() => authMethodOf(fields, before, 'whsec_x')).toThrow('is missing');
  });
});

test.each<[AuthFields, AuthMethod | undefined, string | undefined]>([
  [{}, undefined, 'X-Service-Signature'],
  [{}, HMAC, 'X-Sig'],
  [{ hmacHeader: 'X-New' }, HMAC, 'X-New'],
  [{ authMethod: 'basic' }, HMAC, 'Authorization'],
  [{}, API_KEY, 'X-Key'],
  [{}, OAUTH2, 'Authorization'],
  [{ authMethod: 'apiKey' }, BASIC, undefined],
])(
  '%j for a webhook with %j sets the header in which credentials travel: %s',
  (fields, before, header) => {
    expect(authHeaderOf(fields, before)).toBe(header);
  },
);

test.each<[ChangedAuthFields, AuthMethod, AuthFields]>([
  [
    { hmacHeader: null, hmacSecret: null },
    HMAC,
    { hmacHeader: 'X-Service-Signature', hmacSecret: 'whsec_x' },
  ],
  [{ signatureAlgorithm: null }, ED25519, { signatureAlgorithm: 'hmac-sha256' }],
  [{ authMethod: null, hmacSecret: null }, BASIC, { authMethod: 'hmac', hmacSecret: 'whsec_x' }],
  [
    { oauth2Scope: null, oauth2ClientAuthentication: null },
    OAUTH2,
    { oauth2Scope: null, oauth2ClientAuthentication: 'basic' },
  ],
  // What the webhook does not have is not there already, and what the method requires stays.
  [{ apiKey: null, oauth2Scope: null, signatureAlgorithm: null }, BASIC, {}],
  [{ hmacHeader: null, hmacSecret: null }, ED25519, {}],
  [{ basicAuthPassword: null, basicAuthUsername: 'v' }, BASIC, { basicAuthUsername: 'v' }],
])('taking away by null: %j of a webhook with %j sets %j', (given, before, expected) => {
  expect(withAuthDefaults(given, before, 'whsec_x')).toEqual(expected);
});
