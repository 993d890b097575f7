import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import express from 'express';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { ApiError } from '../api-error.ts';
import { createRequestDeadlines, type RequestDeadlines } from '../http/request-deadlines.ts';
import { sendError } from '../http/send-error.ts';
import type { Issued, Issuer } from '../people/issuer.ts';
import type { Attempt } from '../people/sign-in-attempt.ts';
import type { ErrorCode } from '../error-codes.ts';
import { oidcPages } from './oidc-pages.ts';
import { createReceive } from './session-pages.ts';

const MAX_UNDER_WAY = 100;

const ATTEMPT: Attempt = {
  state: 'known',
  nonce: 'nonce',
  verifier: 'verifier',
  to: '/dashboard/messages',
  companyId: null,
  invitation: null,
  replaces: null,
  endsAtMs: 9e15,
};
const ISSUED: Issued = {
  identity: { issuer: 'https://login.example.com', subject: 'ada' },
  profile: { name: 'Ada', email: null },
  groups: { kind: 'known', groups: ['platform'] },
  sidHash: null,
  idToken: 'token',
};

let server: Server;
let url: string;
let issuer: Issuer;
let deadlines: RequestDeadlines;
let nowMs: number;
/** Whether a sign-in with what the issuer says begins a session. */
let enters: () => Promise<void>;
let wrong: number;

const refuse = (code: ErrorCode) => (): Promise<never> => Promise.reject(new ApiError(code));

beforeEach(async () => {
  [nowMs, wrong] = [0, 0];
  enters = () => Promise.resolve();
  issuer = {
    begin: () => Promise.resolve('https://login.example.com/authorize'),
    finish: () => Promise.resolve(ISSUED),
    endSessionUrl: () => Promise.resolve(null),
    readLogoutToken: () => Promise.resolve({ kind: 'session', sidHash: 'hash' }),
  };
  deadlines = createRequestDeadlines(() => nowMs);
  const app = express();
  app.use(pages());
  app.use(sendError(pino({ enabled: false })));
  server = createServer(app);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

function pages() {
  const signIns = { tryReserve: () => true };
  return oidcPages({
    oidc: {
      config: {
        issuer: 'https://login.example.com',
        clientId: 'posthorn',
        clientSecret: undefined,
        scopes: 'openid',
        groupsClaim: 'groups',
        sessionMs: 1,
        isOnly: false,
        publicUrl: 'https://hooks.example.com',
      },
      issuer: {
        begin: (...args) => issuer.begin(...args),
        finish: (...args) => issuer.finish(...args),
        endSessionUrl: (...args) => issuer.endSessionUrl(...args),
        readLogoutToken: (...args) => issuer.readLogoutToken(...args),
      },
    },
    attempts: {
      store: () => undefined,
      take: (_request, _response, state) =>
        state === ATTEMPT.state ? { kind: 'attempt', attempt: ATTEMPT } : { kind: 'expired' },
      storeRefused: () => undefined,
      readRefused: () => null,
      clearRefused: () => undefined,
    },
    cookies: { read: () => null, set: () => undefined },
    signIn: { checkInvitation: () => Promise.resolve() },
    peopleSignIn: {
      async enter() {
        await enters();
        return { kind: 'company', companyId: 'comp_a', keyHash: 'h', endsAtMs: 9e15 };
      },
    },
    logOutByIssuer: () => Promise.resolve(),
    wrongKeys: {
      count: () => {
        wrong += 1;
      },
      lookUp: (_address, find) => find(),
    },
    signInMetrics: { count: (_way, work) => work() },
    receive: createReceive({ signIns }),
    signIns,
    deadlines,
    logger: pino({ enabled: false }),
    nowMs: () => nowMs,
  });
}

async function begin(): Promise<{ status: number; code?: string }> {
  const headers = { 'content-type': 'application/json' };
  const path = `${url}/dashboard/api/oidc`;
  const response = await fetch(path, { method: 'POST', headers, body: '{}' });
  const { code } = (await response.json()) as { code?: string };
  return { status: response.status, ...(code !== undefined && { code }) };
}

/** Returns the path that the browser is led to. */
async function comeBack(state: string): Promise<string> {
  const path = `${url}/dashboard/api/oidc/callback?code=c&state=${state}`;
  const response = await fetch(path, { redirect: 'manual' });
  expect(response.status).toBe(303);
  return (response.headers.get('location') ?? '').replace('https://hooks.example.com', '');
}

async function logOut(): Promise<number> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const path = `${url}/dashboard/api/oidc/back-channel-logout`;
  const response = await fetch(path, { method: 'POST', headers, body: 'logout_token=t' });
  return response.status;
}

/** Has the issuer let sign-ins wait. */
function holdIssuer(count: number): { areHeld: Promise<true>; release: () => void } {
  const { promise: areHeld, resolve: reached } = Promise.withResolvers<true>();
  const { promise: address, resolve: release } = Promise.withResolvers<string>();
  let held = 0;
  issuer.begin = () => {
    held += 1;
    if (held === count) reached(true);
    return address;
  };
  return {
    areHeld,
    release: () => {
      release('https://login.example.com/authorize');
    },
  };
}

const AWAY = { status: 503, code: 'sign_in_unavailable' };

describe('Sign-ins that wait for the issuer [security]', () => {
  it('are 100 at once; another one is refused until they have ended', async () => {
    const { areHeld, release } = holdIssuer(MAX_UNDER_WAY);
    const waiting = Array.from({ length: MAX_UNDER_WAY }, begin);
    await areHeld;
    expect(await begin()).toEqual(AWAY);
    expect(await comeBack('known')).toBe('/dashboard/sign-in?error=sign_in_unavailable');
    expect(await logOut()).toBe(503);
    release();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(
      Array.from({ length: MAX_UNDER_WAY }, () => 200),
    );
    expect(await begin()).toEqual({ status: 200 });
  });

  it('are refused when their time is over, and count until the issuer lets them go', async () => {
    const { areHeld, release } = holdIssuer(MAX_UNDER_WAY);
    const waiting = Array.from({ length: MAX_UNDER_WAY }, begin);
    await areHeld;
    // Less than 10 s, see request-deadlines.ts.
    nowMs = 8_000;
    deadlines.tick();
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: MAX_UNDER_WAY }, () => AWAY));
    expect(await begin()).toEqual(AWAY);
    release();
    expect(await begin()).toEqual({ status: 200 });
  });

  it('are refused as the fault of the issuer on the way back too', async () => {
    const { promise: asked, resolve: reached } = Promise.withResolvers<true>();
    issuer.finish = () => {
      reached(true);
      return new Promise(() => undefined);
    };
    const coming = comeBack('known');
    await asked;
    nowMs = 8_000;
    deadlines.tick();
    expect(await coming).toBe('/dashboard/sign-in?error=sign_in_unavailable');
  });
});

describe('What counts as a wrong key (docs/contract.md C4.4) [security]', () => {
  it('is a state that no attempt of the browser has', async () => {
    expect(await comeBack('made-up')).toBe('/dashboard/sign-in?error=sign_in_expired');
    expect(wrong).toBe(1);
  });

  it('is an answer of the issuer, and a logout token, that are not valid', async () => {
    issuer.finish = refuse('sign_in_invalid');
    issuer.readLogoutToken = refuse('sign_in_invalid');
    expect(await comeBack('known')).toBe('/dashboard/sign-in?error=sign_in_invalid');
    expect(await logOut()).toBe(400);
    expect(wrong).toBe(2);
  });

  it.each(['link_unknown', 'link_used', 'link_revoked', 'link_expired'] as const)(
    'is an invitation that is refused with %s',
    async (code) => {
      enters = refuse(code);
      expect(await comeBack('known')).toBe(`/dashboard/sign-in?error=${code}`);
      expect(wrong).toBe(1);
    },
  );

  it('is no person whom the issuer knows, and no failure', async () => {
    for (const code of ['no_role', 'person_disabled', 'unavailable'] as const) {
      enters = refuse(code);
      expect(await comeBack('known')).toBe(`/dashboard/sign-in?error=${code}`);
    }
    enters = () => Promise.resolve();
    issuer.finish = refuse('sign_in_refused');
    expect(await comeBack('known')).toBe('/dashboard/sign-in?error=sign_in_refused');
    issuer.finish = () => Promise.resolve(ISSUED);
    expect(await comeBack('known')).toBe('/dashboard/messages');
    expect(wrong).toBe(0);
  });
});
