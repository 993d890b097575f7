import { describe, expect, test } from '@jest/globals';
import { createKnownRoutes } from './known-routes.ts';

const routes = createKnownRoutes(
  [
    { method: 'get', path: '/webhooks/:webhookId' },
    { method: 'delete', path: '/webhooks/:webhookId' },
    { method: 'put', path: '/apps/:appId' },
    { method: 'get', path: '/audit-events', versionedOnly: true },
    { method: 'post', path: '/webhooks/batch', versionedOnly: true },
  ],
  [
    { path: '/.well-known/keys/:companyId', methods: ['GET'] },
    { path: '/pages/*path', methods: ['GET'] },
  ],
);

describe('the labels of a request', () => {
  test.each([
    ['of a route that was found', 'GET', '/webhooks/wh_1', '/webhooks/:webhookId'],
    ['of the same with its version', 'GET', '/api/v1/webhooks/wh_1', '/api/v1/webhooks/:webhookId'],
    ['refused before the router was asked', 'GET', '/api/v1/webhooks/wh_1', undefined],
    ['of HEAD, which is served like GET', 'HEAD', '/webhooks/wh_1', '/webhooks/:webhookId'],
  ])('%s', (_what, method, path, matched) => {
    const labels = { method: 'GET', route: '/webhooks/:webhookId', isKnown: true };
    expect(routes.labelsOf(method, path, matched)).toEqual(labels);
  });

  test.each(['PUT', 'PATCH'])('of a change with %s', (method) => {
    const labels = { method, route: '/apps/:appId', isKnown: true };
    expect(routes.labelsOf(method, '/apps/app_1', '/apps/:appId')).toEqual(labels);
  });

  test('of a path that fits another one with an id too', () => {
    const labels = { method: 'POST', route: '/webhooks/batch', isKnown: true };
    expect(routes.labelsOf('POST', '/api/v1/webhooks/batch', undefined)).toEqual(labels);
  });

  test('of a page', () => {
    expect(routes.labelsOf('GET', '/.well-known/keys/comp_1', undefined)).toEqual({
      method: 'GET',
      route: '/.well-known/keys/:companyId',
      isKnown: true,
    });
    expect(routes.labelsOf('GET', '/xwell-known/keys/comp_1', undefined).route).toBe('unknown');
  });

  test('of a page with any path below it', () => {
    const labels = { method: 'GET', route: '/pages/*path', isKnown: true };
    expect(routes.labelsOf('GET', '/pages/a/b', '/pages/*path')).toEqual(labels);
    expect(routes.labelsOf('GET', '/pages/a/b', undefined)).toEqual(labels);
  });

  test.each(['POST', 'PROPFIND', 'M-SEARCH'])('of a route without this method: %s', (method) => {
    const labels = { method: 'other', route: '/webhooks/:webhookId', isKnown: false };
    expect(routes.labelsOf(method, '/webhooks/wh_1', '/webhooks/:webhookId')).toEqual(labels);
  });

  test.each([
    ['POST', '/nothing', 'POST'],
    ['PROPFIND', '/nothing', 'other'],
    ['GET', '/audit-events', 'GET'],
    ['GET', '/webhooks/wh_1/more', 'GET'],
  ])('of an unknown route: %s %s', (given, path, method) => {
    const labels = { method, route: 'unknown', isKnown: false };
    expect(routes.labelsOf(given, path, undefined)).toEqual(labels);
  });
});
