import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { StoreUnavailableError } from '@posthorn/platform/service/errors.ts';
import express from 'express';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { collectLogLines, type LogLines } from '../../../../test/support/sources/log-lines.ts';
import { ApiError, notFound, overloaded, unavailable } from '../api-error.ts';
import { CHALLENGE, createDelayRefusal, sendError } from './send-error.ts';

describe('send error', () => {
  let log: LogLines;
  let failure: Error;
  let isAuthenticated: boolean;
  let server: Server;

  /** A route that fails once its caller is known, or before. */
  beforeEach(async () => {
    [log, isAuthenticated] = [collectLogLines(), true];
    const app = express();
    app.get('/webhooks/:webhookId', (_request, response) => {
      response.locals.requestId = 'request-1';
      if (isAuthenticated) response.locals.caller = { companyId: 'comp_a' };
      throw failure;
    });
    app.use(
      sendError(log.logger, (send) => {
        send();
      }),
    );
    await new Promise<void>((resolve) => {
      server = app.listen(0, '127.0.0.1', () => {
        resolve();
      });
    });
  });

  afterEach(() => {
    server.close();
  });

  async function fail(
    error: Error,
  ): Promise<{ status: number; body: object; challenge: string | null }> {
    failure = error;
    const { port } = server.address() as AddressInfo;
    const response = await fetch(`http://127.0.0.1:${port}/webhooks/wh_1`);
    const challenge = response.headers.get('www-authenticate');
    return { status: response.status, body: (await response.json()) as object, challenge };
  }

  const PLACE = { requestId: 'request-1', method: 'GET', route: '/webhooks/:webhookId' };

  describe('a request that is refused with 503', () => {
    test.each([
      ['deadline_over', unavailable('deadline_over')],
      ['mongodb_unavailable', unavailable('mongodb_unavailable')],
      ['share_full', overloaded()],
    ])('is logged with its route, its company and the reason %s', async (reason, error) => {
      const { status, body } = await fail(error);
      expect([status, Object.keys(body)]).toEqual([
        503,
        ['success', 'message', 'code', 'requestId'],
      ]);
      const line = { ...PLACE, companyId: 'comp_a', code: 'unavailable', reason };
      expect(log.lines).toMatchObject([{ ...line, msg: 'request refused' }]);
    });

    test('is logged without a company before its key is known', async () => {
      isAuthenticated = false;
      await fail(unavailable('deadline_over'));
      expect(log.lines).toMatchObject([PLACE]);
      expect(log.lines[0]).not.toHaveProperty('companyId');
    });
  });

  test('an error of MongoDB is logged with the same fields', async () => {
    const { status } = await fail(new StoreUnavailableError('no primary'));
    expect(status).toBe(503);
    const line = { ...PLACE, companyId: 'comp_a', reason: 'mongodb_unavailable' };
    expect(log.lines).toMatchObject([{ ...line, err: { message: 'no primary' } }]);
  });

  test('a fault of ours is logged with its stack, its route and its company', async () => {
    const { status } = await fail(new TypeError('x is undefined'));
    expect(status).toBe(500);
    const line = { ...PLACE, companyId: 'comp_a', code: 'internal_error', msg: 'request failed' };
    expect(log.lines).toMatchObject([{ ...line, err: { message: 'x is undefined' } }]);
  });

  test('a refusal that is the fault of the client is not logged', async () => {
    await fail(notFound('webhook'));
    expect(log.lines).toEqual([]);
  });

  describe('the challenge of a refused request', () => {
    test.each(['unauthorized', 'session_replaced'] as const)(
      'is in every 401, such as %s',
      async (code) => {
        const { status, challenge } = await fail(new ApiError(code, 'Sign in.'));
        expect([status, challenge]).toEqual([401, CHALLENGE]);
        // RFC 9110, section 11.6.1, and no scheme for which browsers show a dialog.
        expect(challenge).toMatch(
          /^(?!.*(basic|digest|negotiate) )[\w-]+ [\w-]+="[^"]*"(, ([\w-]+ )?[\w-]+="[^"]*")*$/i,
        );
      },
    );

    test('is in no other one', async () => {
      expect((await fail(notFound('webhook'))).challenge).toBeNull();
    });
  });
});

function setUp() {
  const timers: { ms: number; run: () => void }[] = [];
  const sent: string[] = [];
  const delayRefusal = createDelayRefusal((ms, run) => void timers.push({ ms, run }));
  const refuse = (name: string): void => {
    delayRefusal(() => void sent.push(name));
  };
  return { timers, sent, refuse };
}

test('a refusal is sent a quarter of a second later', () => {
  const { timers, sent, refuse } = setUp();
  refuse('first');
  expect([sent, timers.map(({ ms }) => ms)]).toEqual([[], [250]]);
  timers[0]?.run();
  expect(sent).toEqual(['first']);
});

test('no more than 2,000 refusals are delayed: the next one is sent at once', () => {
  const { timers, sent, refuse } = setUp();
  for (let n = 0; n < 2_000; n += 1) refuse(`delayed ${n}`);
  refuse('at once');
  expect(sent).toEqual(['at once']);
  timers[0]?.run();
  refuse('delayed again');
  expect(sent).toEqual(['at once', 'delayed 0']);
});
