import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  CLIENT_ID,
  type ScriptedIssuer,
  startScriptedIssuer,
} from '../../../../test/support/people/scripted-issuer.ts';
import { createIssuer, type Issuer } from './issuer.ts';

const METADATA = '/.well-known/openid-configuration';
const HOUR_MS = 3_600_000;
const CHALLENGE = { state: 's', nonce: 'n', verifier: 'v'.repeat(43) };

describe('the metadata of the issuer', () => {
  let scripted: ScriptedIssuer;
  let issuer: Issuer;
  let nowMs: number;

  beforeEach(async () => {
    nowMs = 0;
    scripted = await startScriptedIssuer();
    issuer = createIssuer({
      config: {
        issuer: scripted.url,
        clientId: CLIENT_ID,
        clientSecret: undefined,
        scopes: 'openid',
        groupsClaim: 'groups',
        sessionMs: HOUR_MS,
        isOnly: false,
        publicUrl: 'https://hooks.example.com',
      },
      metrics: { requested: () => undefined },
      logger: { warn: () => undefined },
      nowMs: () => nowMs,
    });
  });

  afterEach(() => scripted.close());

  const begin = (): Promise<string> => issuer.begin(CHALLENGE, false);
  const isAway = { code: 'sign_in_unavailable' };

  it('are read at the first sign-in, once for several, and again after an hour', async () => {
    expect(scripted.requests).toEqual([]);
    await Promise.all([begin(), begin(), begin()]);
    nowMs = HOUR_MS - 1;
    await begin();
    expect(scripted.requests).toEqual([METADATA]);
    nowMs = HOUR_MS;
    await begin();
    expect(scripted.requests).toEqual([METADATA, METADATA]);
  });

  it('are used on while the issuer is away, and read when it is back', async () => {
    scripted.behave('broken');
    await expect(begin()).rejects.toMatchObject(isAway);
    scripted.behave('well');
    await begin();
    scripted.behave('broken');
    nowMs = HOUR_MS;
    expect(await begin()).toContain(`${scripted.url}/authorize?`);
    scripted.behave('well');
    await begin();
    await begin();
    expect(scripted.requests).toHaveLength(4);
  });

  it('name where people sign in, with PUBLIC_URL, state, nonce and the hash of the verifier', async () => {
    const { searchParams } = new URL(await begin());
    expect(Object.fromEntries(searchParams)).toEqual({
      client_id: CLIENT_ID,
      redirect_uri: 'https://hooks.example.com/dashboard/api/oidc/callback',
      response_type: 'code',
      scope: 'openid',
      state: 's',
      nonce: 'n',
      // SHA-256 of the verifier (RFC 7636, 4.2), which only the exchange of the code names.
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    });
    expect([...searchParams.values()]).not.toContain(CHALLENGE.verifier);
  });
});
