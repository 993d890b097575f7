import { afterEach, beforeEach, expect, test } from '@jest/globals';
import express from 'express';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { ApiError, unavailable } from '../api-error.ts';
import { sendError } from '../http/send-error.ts';
import { SESSION_PATH, sessionPages } from './session-pages.ts';
import { createSessionCookies, type Session } from '../keys/sessions.ts';

const session: Session = { kind: 'company', companyId: 'comp_a', keyHash: 'h', endsAtMs: 9e15 };
const key = { keyId: 'key_1', companyId: 'comp_a', scopes: [], appId: null, expiresAtMs: null };

let server: Server;
let url: string;
let isLimited: boolean;
let described: number;

beforeEach(async () => {
  [isLimited, described] = [false, 0];
  const statements = { sign: () => 'signed', read: () => JSON.stringify(session) };
  const fail = () => Promise.reject(new ApiError('internal_error', 'not needed'));
  const app = express();
  app.use(
    sessionPages({
      signIn: {
        byKey: fail,
        byLink: fail,
        toPortal: fail,
        checkInvitation: fail,
        out: () => Promise.reject(unavailable('mongodb_unavailable')),
      },
      oidc: null,
      peopleSignIn: { change: fail, companiesOf: fail, out: () => Promise.resolve(undefined) },
      signInMetrics: { count: (_way, work) => work() },
      authenticate: () => Promise.resolve({ ...key, isSuspended: false }),
      cookies: createSessionCookies({ statements, publicUrl: undefined, nowMs: () => 0 }),
      portalSessions: { assertGoesOn: () => Promise.resolve() },
      companies: {
        nameOf: () => {
          described += 1;
          return fail();
        },
      },
      links: { themeOf: fail },
      apps: { get: fail },
      limits: {
        limitCompany: (response) => {
          expect(response.locals.caller).toMatchObject({ companyId: 'comp_a' });
          if (isLimited) throw new ApiError('rate_limited', 'wait');
        },
      },
      signIns: { tryReserve: () => true },
      deadlines: { within: (_response, step) => step },
    }),
  );
  app.use(sendError(pino({ enabled: false })));
  server = createServer(app);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${SESSION_PATH}`;
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const headers = { cookie: 'posthorn_session=signed', 'x-posthorn-session': '1' };

test('signing out that fails is a failure, and the browser forgets the session all the same', async () => {
  const response = await fetch(url, { method: 'DELETE', headers });
  expect(response.status).toBe(503);
  expect(response.headers.get('set-cookie')).toMatch(/^posthorn_session=; .*1970/);
});

test('a session is read within the limit of its company', async () => {
  isLimited = true;
  expect((await fetch(url, { headers })).status).toBe(429);
  expect(described).toBe(0);
});
