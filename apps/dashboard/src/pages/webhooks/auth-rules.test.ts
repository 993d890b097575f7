import { describe, expect, it, jest, test } from '@jest/globals';
import {
  authBody,
  type AuthName,
  isOtherServer,
  isRequired,
  mustGiveAgain,
  readAuth,
  type StoredAuth,
} from './auth-rules.ts';

const MASK = '********';
const BASIC: StoredAuth = { method: 'basic', username: 'shop', password: MASK };
const API_KEY: StoredAuth = { method: 'api_key', apiKey: MASK, apiKeyHeader: 'X-Key' };
const HMAC: StoredAuth = { method: 'hmac', hmacHeader: 'X-Sign', hmacSecret: MASK };
const ED25519: StoredAuth = { ...HMAC, signatureAlgorithm: 'ed25519' };
const OAUTH2: StoredAuth = {
  method: 'oauth2',
  tokenUrl: 'https://login.example/token',
  clientId: 'shop',
  clientSecret: MASK,
  scope: 'orders',
  audience: null,
  clientAuthentication: 'post',
};

/** What the form sends for these fields. */
function bodyOf(typed: Record<string, string>, stored: StoredAuth | null): object {
  const form = new FormData();
  for (const [name, value] of Object.entries(typed)) form.set(name, value);
  return authBody(readAuth(form, stored), stored);
}

describe('what a form sends of the authentication', () => {
  it('is nothing for a new webhook that keeps the default', () => {
    const typed = { authMethod: 'hmac', signatureAlgorithm: 'hmac-sha256', hmacHeader: ' ' };
    expect(bodyOf({ ...typed, hmacSecret: '' }, null)).toEqual({});
  });

  it('is the method with what was typed for it', () => {
    const typed = { authMethod: 'basic', basicAuthUsername: 'shop', basicAuthPassword: ' pass ' };
    expect(bodyOf(typed, null)).toEqual(typed);
    expect(bodyOf(typed, HMAC)).toEqual(typed);
    const ed25519 = { authMethod: 'hmac', signatureAlgorithm: 'ed25519' };
    expect(bodyOf(ed25519, null)).toEqual({ signatureAlgorithm: 'ed25519' });
    expect(bodyOf(ed25519, BASIC)).toEqual(ed25519);
  });

  it('is nothing of another method that the form holds', () => {
    const typed = { authMethod: 'apiKey', apiKey: 'k', apiKeyHeader: ' X-Key ', hmacSecret: 's' };
    const apiKey = { authMethod: 'apiKey', apiKey: 'k', apiKeyHeader: 'X-Key' };
    expect(bodyOf(typed, BASIC)).toEqual(apiKey);
  });

  it.each<[string, Record<string, string>, StoredAuth]>([
    ['basic', { basicAuthUsername: 'shop', basicAuthPassword: '' }, BASIC],
    ['basic', { basicAuthUsername: 'shop', basicAuthPassword: MASK }, BASIC],
    ['apiKey', { apiKeyHeader: 'X-Key', apiKey: '' }, API_KEY],
    ['hmac', { hmacHeader: 'X-Sign', hmacSecret: '', signatureAlgorithm: 'hmac-sha256' }, HMAC],
    ['hmac', { signatureAlgorithm: 'ed25519' }, ED25519],
    ['oauth2', { oauth2Scope: 'orders', oauth2Audience: '', oauth2ClientSecret: '' }, OAUTH2],
  ])('is nothing while %s stays as it is: %j', (authMethod, typed, stored) => {
    expect(bodyOf({ authMethod, ...typed }, stored)).toEqual({});
  });

  it('is only what was changed within a method', () => {
    const secret = { basicAuthUsername: 'shop', basicAuthPassword: 'new' };
    expect(bodyOf(secret, BASIC)).toEqual({ basicAuthPassword: 'new' });
    expect(bodyOf({ hmacHeader: '' }, HMAC)).toEqual({ hmacHeader: 'X-Service-Signature' });
    const algorithm = { signatureAlgorithm: 'hmac-sha256' };
    expect(bodyOf({ ...algorithm, hmacHeader: 'X-Sign' }, ED25519)).toEqual(algorithm);
  });

  it('takes scope and audience away with null', () => {
    const typed = { oauth2Scope: '', oauth2Audience: 'api', oauth2ClientAuthentication: 'basic' };
    expect(bodyOf(typed, OAUTH2)).toEqual({ ...typed, oauth2Scope: null });
  });
});

describe('a stored secret must be given again', () => {
  const visitor = { seesSecrets: false, isMoved: true };

  test.each<[AuthName, StoredAuth | null, boolean]>([
    ['basic', BASIC, true],
    ['apiKey', API_KEY, true],
    ['oauth2', OAUTH2, true],
    ['hmac', HMAC, false],
    ['basic', API_KEY, false],
    ['basic', null, false],
  ])('of %s at another server', (method, stored, isAsked) => {
    expect(mustGiveAgain({ ...visitor, method, stored })).toBe(isAsked);
    expect(mustGiveAgain({ ...visitor, method, stored, isMoved: false })).toBe(false);
    expect(mustGiveAgain({ ...visitor, method, stored, seesSecrets: true })).toBe(false);
  });

  test('of oauth2 at another token server too', () => {
    const asked = { ...visitor, isMoved: false, method: 'oauth2', stored: OAUTH2 } as const;
    expect(mustGiveAgain({ ...asked, tokenUrl: 'https://login.example/other' })).toBe(false);
    expect(mustGiveAgain({ ...asked, tokenUrl: 'https://evil.example/token' })).toBe(true);
  });

  test('makes its field required, which it is not otherwise', () => {
    const asked = { ...visitor, method: 'basic', stored: BASIC } as const;
    expect(isRequired('basicAuthPassword', asked)).toBe(true);
    expect(isRequired('basicAuthPassword', { ...asked, isMoved: false })).toBe(false);
    expect(isRequired('basicAuthPassword', { ...asked, isMoved: false, stored: HMAC })).toBe(true);
    expect(isRequired('basicAuthUsername', { ...asked, isMoved: false })).toBe(true);
    expect(isRequired('oauth2Scope', { ...asked, method: 'oauth2' })).toBe(false);
  });
});

test.each([
  ['https://shop.example/b', false],
  [' https://shop.example:443/ ', false],
  ['http://shop.example/a', true],
  ['https://shop.example:8443/a', true],
  ['https://www.shop.example/a', true],
  ['https://', false],
])('%s names another server than https://shop.example/a: %s', (url, isOther) => {
  expect(isOtherServer(url, 'https://shop.example/a')).toBe(isOther);
});

it('tells servers apart without URL.parse, which Safari before version 18 lacks', () => {
  const parse = jest.spyOn(URL, 'parse').mockImplementation(missing);
  expect(isOtherServer('http://shop.example/a', 'https://shop.example/a')).toBe(true);
  expect(isOtherServer('https://', 'https://shop.example/a')).toBe(false);
  parse.mockRestore();
});

function missing(): never {
  throw new TypeError('URL.parse is not a function');
}
