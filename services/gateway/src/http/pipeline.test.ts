import { afterEach, beforeEach, expect, test } from '@jest/globals';
import express, { type ErrorRequestHandler } from 'express';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ApiError } from '../api-error.ts';
import { createRequestsUnderWay } from '../limits/requests-under-way.ts';
import { handlerOf, type PipelineDeps } from './pipeline.ts';
import { addressOf, createRequestMemory } from './request-memory.ts';
import { type Origin, route } from './route.ts';

const caller = { companyId: 'comp_a', appId: null, keyId: 'key_1', scopes: ['read'] };

let waitMs: number;
let steps: string[];
let isRepeat: boolean;
let server: Server;

const NO_ORIGIN: Origin = {
  newId: () => 'app_new',
  seed: () => Promise.reject(new Error('not called')),
};

const deps = {
  identify: () => Promise.resolve(caller),
  limits: {
    limitCompany: () => undefined,
    countMore: () => undefined,
  },
  memory: createRequestMemory(1_000_000),
  unknownCallers: createRequestMemory(1_000_000, addressOf),
  slices: { next: (companyId) => Promise.resolve(void steps.push(`turn of ${companyId}`)) },
  throttle: {
    note: () => undefined,
    charge: () => undefined,
    chargeBytes: () => undefined,
    waitMs: () => waitMs,
  },
  underWay: createRequestsUnderWay(),
  resolveUids: (named) => named,
  confineToApp: () => Promise.resolve(),
  deadlines: {
    within: (_response, step) => step,
    signalOf: () => new AbortController().signal,
  },
  recordRequest: (_route, _request, handle) => handle(Promise.resolve()),
  createOnce: (_request, { create }) => create(NO_ORIGIN, isRepeat),
} as PipelineDeps;

const read = route({
  operationId: 'readShort',
  method: 'get',
  path: '/read',
  scope: 'read',
  tag: 'Test',
  summary: 'Read something short',
  response: { status: 200, message: 'Found' },
  handle() {
    steps.push('read');
    return Promise.resolve({});
  },
});

/** What each look for an earlier request's thing finds, in turn; nothing after these. */
let found: (object | null)[];

const make = route({
  operationId: 'createThing',
  method: 'post',
  path: '/make',
  scope: 'read',
  tag: 'Test',
  summary: 'Create a thing',
  isBodyOptional: true,
  response: { status: 201, message: 'Created' },
  creation: {
    find() {
      const data = found.shift() ?? null;
      return Promise.resolve(data && { data });
    },
  },
  handle() {
    steps.push('make');
    return steps.length === 1
      ? Promise.reject(new ApiError('quota_exceeded'))
      : Promise.resolve({});
  },
});

beforeEach(async () => {
  [steps, waitMs, isRepeat, found] = [[], 0, false, []];
  const app = express()
    .get('/read', handlerOf(read, deps))
    .post('/make', handlerOf(make, deps))
    .use(((error: ApiError, _request, response, next) => {
      response.status(error.status).end();
      next();
    }) as ErrorRequestHandler);
  await new Promise<void>((resolve) => {
    server = app.listen(0, '127.0.0.1', () => {
      resolve();
    });
  });
});

afterEach(() => {
  server.close();
});

function call(path: string, method: string): Promise<Response> {
  const { port } = server.address() as AddressInfo;
  return fetch(`http://127.0.0.1:${port}${path}`, { method });
}

const get = async (): Promise<number> => (await call('/read', 'GET')).status;

test('a short request of a throttled company waits for its turn', async () => {
  waitMs = 5;
  expect(await get()).toBe(200);
  expect(steps).toEqual(['turn of comp_a', 'read']);
});

test('a short request of another company takes no turn', async () => {
  expect(await get()).toBe(200);
  expect(steps).toEqual(['read']);
});

test.each([
  ['finds what the first request has created', [{ id: 'app_1' }], [], 201],
  ['finds what the first request creates meanwhile', [null, { id: 'app_1' }], ['make'], 201],
  ['is refused when the first request creates nothing', [null, null], ['make'], 409],
])('a repeat with the key of an interrupted request %s', async (_what, finds, made, status) => {
  [isRepeat, found] = [true, finds];
  const response = await call('/make', 'POST');
  expect([response.status, steps]).toEqual([status, made]);
  if (status === 201) expect(await response.json()).toMatchObject({ data: { id: 'app_1' } });
});
