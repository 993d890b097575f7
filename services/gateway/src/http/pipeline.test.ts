import { afterEach, beforeEach, expect, test } from '@jest/globals';
import express from 'express';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRequestsUnderWay } from '../limits/requests-under-way.ts';
import { handlersOf, type PipelineDeps } from './pipeline.ts';
import { addressOf, createRequestMemory } from './request-memory.ts';
import { type Origin, route } from './route.ts';

const caller = { companyId: 'comp_a', appId: null, keyId: 'key_1', scopes: ['read'] };

let restMs: number;
let steps: string[];
let server: Server;

const NO_ORIGIN: Origin = {
  newId: () => 'app_new',
  seed: () => Promise.reject(new Error('not called')),
};

const deps = {
  identify: () => Promise.resolve(caller),
  limits: {
    limitCompany: (_request, _response, next) => {
      next();
    },
  },
  memory: createRequestMemory(1_000_000),
  unknownCallers: createRequestMemory(1_000_000, addressOf),
  turns: { take: (companyId) => Promise.resolve(void steps.push(`turn of ${companyId}`)) },
  rests: {
    note: () => undefined,
    charge: () => undefined,
    chargeBytes: () => undefined,
    restMs: () => restMs,
  },
  underWay: createRequestsUnderWay(),
  resolveUids: (named) => named,
  confineToApp: () => Promise.resolve(),
  deadlines: { within: (_response, step) => step },
  recordRequest: (_route, _request, handle) => handle(),
  createOnce: (_request, { create }) => create(NO_ORIGIN, false),
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

beforeEach(async () => {
  [steps, restMs] = [[], 0];
  const app = express().get('/read', ...handlersOf(read, deps));
  await new Promise<void>((resolve) => {
    server = app.listen(0, '127.0.0.1', () => {
      resolve();
    });
  });
});

afterEach(() => {
  server.close();
});

async function get(): Promise<number> {
  const { port } = server.address() as AddressInfo;
  return (await fetch(`http://127.0.0.1:${port}/read`)).status;
}

test('a short request of a company that has to rest waits for its turn', async () => {
  restMs = 5;
  expect(await get()).toBe(200);
  expect(steps).toEqual(['turn of comp_a', 'read']);
});

test('a short request of another company takes no turn', async () => {
  expect(await get()).toBe(200);
  expect(steps).toEqual(['read']);
});
