import { once } from 'node:events';
import { request as openRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { closeServer } from '@posthorn/platform/service/ops-server.ts';
import express, { type ErrorRequestHandler } from 'express';
import { Registry } from 'prom-client';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { ApiError } from '../api-error.ts';
import { createHttpMetrics } from './http-metrics.ts';
import { createKnownRoutes } from './known-routes.ts';

/** Express tells a handler of errors by its four arguments. */
const failWithStatus: ErrorRequestHandler = (error: ApiError, _request, response, next) => {
  if (response.headersSent) next(error);
  else response.status(error.status).end();
};

let registry: Registry;
let server: Server;
let baseUrl: string;
let isLimited: boolean;
let isFailing: boolean;

beforeEach(async () => {
  registry = new Registry();
  [isLimited, isFailing] = [false, false];
  const routes = createKnownRoutes(
    [
      { method: 'get', path: '/hanging' },
      { method: 'post', path: '/webhook-messages' },
      { method: 'post', path: '/webhook-messages/batch', versionedOnly: true },
    ],
    [],
  );
  const app = express();
  const observe = createHttpMetrics(registry).observe(routes, ['rate_limited']);
  app.use((request, response, next) => {
    observe(request, response);
    if (isLimited) throw new ApiError('rate_limited', 'Wait.');
    next();
  });
  app.get('/hanging', (_request, response) => void response.write('begun'));
  app.post('/webhook-messages', (_request, response) => void response.status(202).end());
  app.post('/api/v1/webhook-messages/batch', (_request, response) => {
    response.locals.messages = { count: 5 };
    if (isFailing) {
      response.locals.errorCode = 'unavailable';
      response.status(503).end();
      return;
    }
    response.locals.messages = { accepted: 2, refused: new Map([['not_found', 1]]) };
    response.status(202).end();
  });
  app.use(failWithStatus);
  server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(() => closeServer(server, 0));

/** The counted requests, by their labels. */
async function counted(): Promise<Record<string, number>> {
  const metric = await registry.getSingleMetric('posthorn_http_requests_total')?.get();
  const samples = metric?.values.map(({ labels, value }): [string, number] => [
    [labels.method, labels.route, labels.code].join(' '),
    value,
  ]);
  return Object.fromEntries(samples ?? []);
}

async function untilCounted(expected: Record<string, number>): Promise<void> {
  await eventually('a counted request', async () => Object.keys(await counted()).length > 0);
  expect(await counted()).toEqual(expected);
}

/** Resolves when the beginning of the response has come. */
async function beginHanging(): Promise<() => void> {
  const request = openRequest(`${baseUrl}/hanging`).on('error', () => undefined);
  request.end();
  const [response] = (await once(request, 'response')) as [NodeJS.ReadableStream];
  response.on('error', () => undefined);
  await once(response, 'data');
  return () => void request.destroy();
}

describe('a request', () => {
  test('is counted with the status of its response', async () => {
    await fetch(`${baseUrl}/webhook-messages`, { method: 'POST' });
    await untilCounted({ 'POST /webhook-messages 202': 1 });
  });

  test('whose client goes away is counted as aborted, not as 200', async () => {
    const abort = await beginHanging();
    abort();
    await untilCounted({ 'GET /hanging aborted': 1 });
  });

  test('that the end of a drain cuts is counted as aborted, not as 200', async () => {
    await beginHanging();
    await closeServer(server, 0);
    await untilCounted({ 'GET /hanging aborted': 1 });
  });

  test('that a limit refuses before its route is found is counted with its route', async () => {
    isLimited = true;
    await fetch(`${baseUrl}/webhook-messages`, { method: 'POST' });
    await untilCounted({ 'POST /webhook-messages 429': 1 });
  });

  test('a request with a method and a path that a client made up adds no label of its own', async () => {
    await fetch(`${baseUrl}/made/up`, { method: 'PROPFIND' });
    await untilCounted({ 'other unknown 404': 1 });
    expect(await registry.metrics()).not.toMatch(/duration_seconds\S*unknown/);
  });
});

test('The reasons for which a message may be refused are there from the start, at 0', async () => {
  const text = await registry.metrics();
  expect(text).toContain('posthorn_messages_rejected_total{reason="rate_limited"} 0');
});

describe('a batch', () => {
  const valueOf = async (name: string): Promise<Record<string, number>> => {
    const metric = await registry.getSingleMetric(name)?.get();
    const samples = metric?.values.map(({ labels, value }): [string, number] => [
      String(labels.reason),
      value,
    ]);
    return Object.fromEntries(samples ?? []);
  };
  const post = async (status: number): Promise<void> => {
    await fetch(`${baseUrl}/api/v1/webhook-messages/batch`, { method: 'POST' });
    await untilCounted({ [`POST /webhook-messages/batch ${status}`]: 1 });
  };

  test('counts each message that was accepted or refused, and no repeat', async () => {
    await post(202);
    expect(await valueOf('posthorn_messages_accepted_total')).toEqual({ undefined: 2 });
    const rejected = await valueOf('posthorn_messages_rejected_total');
    expect(rejected).toEqual({ rate_limited: 0, not_found: 1 });
  });

  test('that is refused counts as many refused messages as it has', async () => {
    isFailing = true;
    await post(503);
    expect(await valueOf('posthorn_messages_accepted_total')).toEqual({ undefined: 0 });
    const rejected = await valueOf('posthorn_messages_rejected_total');
    expect(rejected).toEqual({ rate_limited: 0, unavailable: 5 });
  });
});
