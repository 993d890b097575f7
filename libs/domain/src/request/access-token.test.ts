import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { OAuth2Client } from '../webhook.ts';
import { readTokenAnswer, tokenRequestOf } from './access-token.ts';

const CLIENT: OAuth2Client = {
  method: 'oauth2',
  tokenUrl: 'https://login.example.com/token',
  clientId: 'a:b c',
  clientSecret: 'p%ä+',
  scope: null,
  audience: null,
  clientAuthentication: 'basic',
};

describe('a token request [security]', () => {
  test('has the credentials in Authorization, encoded as in a form', () => {
    const { headers, body } = tokenRequestOf(CLIENT);
    expect(body).toBe('grant_type=client_credentials');
    const login = Buffer.from('a%3Ab+c:p%25%C3%A4%2B').toString('base64');
    expect(headers).toEqual({
      accept: 'application/json',
      'accept-encoding': 'identity',
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Basic ${login}`,
    });
  });

  test('has them in its body with post, beside scope and audience', () => {
    const wanted = {
      scope: 'a b',
      audience: 'https://x.y/',
      clientAuthentication: 'post',
    } as const;
    const { headers, body } = tokenRequestOf({ ...CLIENT, ...wanted });
    expect(headers).not.toHaveProperty('authorization');
    expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
      grant_type: 'client_credentials',
      scope: 'a b',
      audience: 'https://x.y/',
      client_id: 'a:b c',
      client_secret: 'p%ä+',
    });
  });
});

const answer = (fields: object, status = 200) =>
  readTokenAnswer(status, JSON.stringify({ access_token: 't', token_type: 'Bearer', ...fields }));

describe('the answer of a token server [security]', () => {
  test.each([
    [{ expires_in: 3_600 }, 3_570_000],
    [{ expires_in: '600' }, 570_000],
    [{ expires_in: 40 }, 30_000],
    [{ expires_in: 0.001 }, 1],
    [{ expires_in: 86_400 }, 3_600_000],
    [{ expires_in: 1e300 }, 3_600_000],
    [{}, 270_000],
    [{ expires_in: null }, 270_000],
    [{ token_type: 'bearer' }, 270_000],
  ])('with %j is a token that is used for %d ms', (fields, usableForMs) => {
    expect(answer(fields)).toEqual({ kind: 'token', value: 't', usableForMs });
  });

  test.each([
    [{ access_token: undefined }, 'a usable access_token'],
    [{ access_token: 'a\nb' }, 'a usable access_token'],
    [{ access_token: 'é' }, 'a usable access_token'],
    [{ access_token: 'x'.repeat(8_193) }, 'a usable access_token'],
    [{ token_type: 'mac' }, 'token_type'],
    [{ token_type: undefined }, 'token_type'],
    [{ expires_in: 0 }, 'expires_in'],
    [{ expires_in: -1 }, 'expires_in'],
    [{ expires_in: 'soon' }, 'expires_in'],
    [{ expires_in: '' }, 'expires_in'],
    [{ expires_in: {} }, 'expires_in'],
  ])('with %j is none', (fields, why) => {
    expect(answer(fields)).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining(why),
    });
  });

  test.each([
    [401, '{"error": "invalid_client"}', 'the token server answered 401: invalid_client'],
    [400, '{"error": "hush <b>"}', 'the token server answered 400'],
    [503, 'busy', 'the token server answered 503'],
    [302, '', 'the token server answered 302'],
    [200, '[]', 'the token server did not answer with a JSON object'],
    [200, 'null', 'the token server did not answer with a JSON object'],
    [200, '<html>', 'the token server did not answer with a JSON object'],
  ])('of %d and %s is none: %s', (status, body, reason) => {
    expect(readTokenAnswer(status, body)).toEqual({ kind: 'failed', reason });
  });

  test('is judged whatever it is', () => {
    const fields = fc.record(
      { access_token: fc.anything(), token_type: fc.anything(), expires_in: fc.anything() },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fields, (each) => {
        const judged = readTokenAnswer(200, JSON.stringify(each));
        if (judged.kind === 'token') expect(judged.usableForMs).toBeGreaterThan(0);
      }),
    );
  });
});
