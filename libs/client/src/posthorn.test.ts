import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { Posthorn } from './index.ts';
import type { operations } from './schema.ts';

type OperationId = keyof operations;

const SINCE = '2026-01-31T09:30:00.000Z';

/** The one call for each operation. The types demand every operation of the document here. */
const CALLS: Record<OperationId, (client: Posthorn) => PromiseLike<unknown>> = {
  createProject: ({ projects }) => projects.create({ name: 'Shop' }),
  listProjects: ({ projects }) => projects.list(),
  getProject: ({ projects }) => projects.get('ID'),
  updateProject: ({ projects }) => projects.update('ID', {}),
  deleteProject: ({ projects }) => projects.delete('ID'),
  createApp: ({ apps }) => apps.create({ name: 'Orders', projectId: 'proj_1' }),
  listApps: ({ apps }) => apps.list({ projectId: 'proj_1' }),
  getApp: ({ apps }) => apps.get('ID'),
  updateApp: ({ apps }) => apps.update('ID', {}),
  deleteApp: ({ apps }) => apps.delete('ID'),
  holdApp: ({ apps }) => apps.hold('ID'),
  resumeApp: ({ apps }) => apps.resume('ID'),
  findApps: ({ apps }) => apps.find(),
  getAppCounts: ({ apps }) => apps.counts(['app_1']),
  createEventType: ({ eventTypes }) => eventTypes.create('ID', { name: 'order.paid' }),
  listEventTypes: ({ eventTypes }) => eventTypes.list('ID'),
  getEventType: ({ eventTypes }) => eventTypes.get('ID', 'ID'),
  updateEventType: ({ eventTypes }) => eventTypes.update('ID', 'ID', {}),
  deleteEventType: ({ eventTypes }) => eventTypes.delete('ID', 'ID'),
  importEventTypes: ({ eventTypes }) => eventTypes.import('ID', { document: {} }),
  exportEventTypes: ({ eventTypes }) => eventTypes.export('ID'),
  listAppEventTypes: ({ eventTypes }) => eventTypes.listOfApp('ID'),
  getAppEventType: ({ eventTypes }) => eventTypes.getOfApp('ID', 'ID'),
  createWebhook: ({ webhooks }) => webhooks.create({ url: 'https://example.com' }),
  listWebhooks: ({ webhooks }) => webhooks.list(),
  getWebhook: ({ webhooks }) => webhooks.get('ID'),
  updateWebhook: ({ webhooks }) => webhooks.update('ID', {}),
  deleteWebhook: ({ webhooks }) => webhooks.delete('ID'),
  rotateWebhookSecret: ({ webhooks }) => webhooks.rotateSecret('ID'),
  testFilter: ({ webhooks }) => webhooks.testFilter({ filter: {}, payload: {} }),
  testWebhook: ({ webhooks }) => webhooks.test('ID'),
  getWebhookHealth: ({ webhooks }) => webhooks.health('ID'),
  holdWebhook: ({ webhooks }) => webhooks.hold('ID'),
  resumeWebhook: ({ webhooks }) => webhooks.resume('ID'),
  listOrderingKeys: ({ webhooks }) => webhooks.orderingKeys('ID'),
  skipOrderingKey: ({ webhooks }) =>
    webhooks.skipOrderingKey('ID', { orderingKey: 'a', deliveryId: 'dlv_1' }),
  findWebhooks: ({ webhooks }) => webhooks.find(),
  createMessage: ({ messages }) => messages.send({ appId: 'app_1', payload: {} }),
  createMessages: ({ messages }) => messages.sendMany([{ appId: 'app_1', payload: {} }]),
  listMessages: ({ messages }) => messages.list(),
  getMessage: ({ messages }) => messages.get('ID'),
  erasePayload: ({ messages }) => messages.erasePayload('ID'),
  eraseResponses: ({ deliveries }) => deliveries.eraseResponses('ID'),
  listMessageDeliveries: ({ messages }) => messages.listDeliveries('ID'),
  getDelivery: ({ deliveries }) => deliveries.get('ID'),
  listDeliveries: ({ deliveries }) => deliveries.list(),
  cancelDelivery: ({ deliveries }) => deliveries.cancel('ID'),
  cancelPendingDeliveries: ({ webhooks }) => webhooks.cancelPending('ID'),
  resendDelivery: ({ deliveries }) => deliveries.resend('ID'),
  cancelDeliveries: ({ cancellations }) => cancellations.start({ eventType: 'order.paid' }),
  estimateCancellation: ({ cancellations }) => cancellations.estimate({ eventType: 'order.paid' }),
  listCancellations: ({ cancellations }) => cancellations.list(),
  getCancellation: ({ cancellations }) => cancellations.get('ID'),
  resendDeliveries: ({ resends }) => resends.startForFilter({ eventType: 'order.paid' }),
  estimateResend: ({ resends }) => resends.estimateForFilter({ eventType: 'order.paid' }),
  startWebhookResend: ({ resends }) => resends.startForWebhook('ID', { since: SINCE }),
  startAppResend: ({ resends }) => resends.startForApp('ID', { since: SINCE }),
  estimateWebhookResend: ({ resends }) => resends.estimateForWebhook('ID', { since: SINCE }),
  estimateAppResend: ({ resends }) => resends.estimateForApp('ID', { since: SINCE }),
  startReplay: ({ resends }) => resends.startReplay('ID', { since: SINCE }),
  estimateReplay: ({ resends }) => resends.estimateReplay('ID', { since: SINCE }),
  listResends: ({ resends }) => resends.list(),
  getResend: ({ resends }) => resends.get('ID'),
  abortResend: ({ resends }) => resends.abort('ID'),
  createApiKey: ({ apiKeys }) => apiKeys.create({ name: 'CI', scopes: ['messages:write'] }),
  listApiKeys: ({ apiKeys }) => apiKeys.list(),
  rotateApiKey: ({ apiKeys }) => apiKeys.rotate('ID'),
  revokeApiKey: ({ apiKeys }) => apiKeys.revoke('ID'),
  listSigningKeys: ({ signingKeys }) => signingKeys.list(),
  rotateSigningKey: ({ signingKeys }) => signingKeys.rotate(),
  listAuditEvents: ({ auditEvents }) => auditEvents.list(),
  getStats: ({ statistics }) => statistics.get(),
  getOverview: ({ statistics }) => statistics.overview(),
  listFailures: ({ statistics }) => statistics.failures(),
  listCircuits: ({ statistics }) => statistics.circuits(),
  createPortalLink: ({ portalLinks }) =>
    portalLinks.create('ID', { capabilities: [], expiresInSeconds: 60 }),
  listPortalLinks: ({ portalLinks }) => portalLinks.list(),
  revokePortalLink: ({ portalLinks }) => portalLinks.revoke('ID'),
  getPortalSettings: ({ portalSettings }) => portalSettings.get(),
  updatePortalSettings: ({ portalSettings }) => portalSettings.update({ origins: [] }),
  listPeople: ({ people }) => people.list(),
  getPerson: ({ people }) => people.get('ID'),
  updatePerson: ({ people }) => people.update('ID', { disabled: true }),
  deletePerson: ({ people }) => people.remove('ID'),
  endPersonSessions: ({ people }) => people.endSessions('ID'),
  getPeopleSettings: ({ people }) => people.settings(),
  updatePeopleSettings: ({ people }) => people.updateSettings({ groups: [] }),
  createInvitation: ({ people }) => people.invite({ role: 'viewer' }),
  listInvitations: ({ people }) => people.invitations(),
  revokeInvitation: ({ people }) => people.revokeInvitation('ID'),
  getMe: (client) => client.me(),
  findById: (client) => client.find('msg_1'),
  getSourceIps: (client) => client.sourceIps(),
};

/** Methods that are made of others, or make any request. */
const OTHERS = ['messages.waitUntilFinal', 'request'];

interface Operation {
  operationId: OperationId;
  parameters?: { name?: string; in?: string; schema?: { maximum?: number } }[];
}

const ROOT = join(import.meta.dirname, '../../..');
const document = JSON.parse(readFileSync(join(ROOT, 'docs/openapi.json'), 'utf8')) as {
  paths: Record<string, Record<string, Operation>>;
};
const documented = Object.entries(document.paths).flatMap(([path, methods]) => {
  const address = path.replace(/^(?!\/api\/v1)/, '/api/v1').replaceAll(/\{\w+\}/g, 'ID');
  return Object.entries(methods).map(([method, { operationId, parameters = [] }]) => ({
    operationId,
    request: `${method.toUpperCase()} ${address}`,
    takesKey: parameters.some(({ name }) => name === 'Idempotency-Key'),
    query: new Map(parameters.map(({ name, schema }) => [name, schema])),
  }));
});

const FULL_PAGE = Array<object>(100).fill({});

/** Calls one operation, and reads all of a list. Returns the requests and the methods that were called. */
async function callOf(operationId: OperationId) {
  const requests: { line: string; query: URLSearchParams; headers: Headers }[] = [];
  const called: string[] = [];
  const client = new Posthorn({
    apiKey: 'phk_1',
    baseUrl: 'http://127.0.0.1:1',
    fetch: (url, { method = '', headers }) => {
      const { pathname, searchParams } = new URL(url);
      const line = `${method} ${pathname}`;
      requests.push({ line, query: searchParams, headers: new Headers(headers) });
      const isFirst = requests.length === 1;
      const data = operationId === 'createMessages' ? { results: [{}] } : FULL_PAGE;
      const page = isFirst ? { data, nextCursor: 'c' } : { data: [], nextCursor: null };
      return Promise.resolve(Response.json({ success: true, ...page }));
    },
  });
  const result = CALLS[operationId](watch(client, '', called));
  if (Symbol.asyncIterator in result) await Array.fromAsync(result as AsyncIterable<unknown>);
  else await result;
  return { requests, called };
}

/** Notes the names of the methods that are called. They get the object itself, which has private fields. */
function watch<T extends object>(object: T, prefix: string, called: string[]): T {
  return new Proxy(object, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value === 'function') {
        return (...args: unknown[]): unknown => {
          called.push(`${prefix}${String(name)}`);
          return Reflect.apply(value, target, args);
        };
      }
      return value instanceof Object ? watch(value, `${String(name)}.`, called) : value;
    },
  });
}

const methodsOf = (object: object): string[] => {
  const names = Object.getOwnPropertyNames(Object.getPrototypeOf(object));
  return names.filter((name) => name !== 'constructor');
};

test('each operation of the API is reachable from exactly one method', async () => {
  const called: string[] = [];
  for (const { operationId, request } of documented) {
    const call = await callOf(operationId);
    expect(new Set(call.requests.map(({ line }) => line))).toEqual(new Set([request]));
    called.push(...call.called);
  }
  const ids = documented.map(({ operationId }) => operationId);
  expect(ids.toSorted()).toEqual(Object.keys(CALLS).toSorted());
  const client = new Posthorn({ apiKey: 'phk_1', baseUrl: 'http://127.0.0.1:1' });
  const ofResources = Object.entries(client).flatMap(([name, resource]) =>
    methodsOf(resource as object).map((method) => `${name}.${method}`),
  );
  const methods = [...methodsOf(client), ...ofResources];
  expect([...called, ...OTHERS].toSorted()).toEqual(methods.toSorted());
});

test.each(documented.map((each) => [each.operationId, each] as const))(
  '%s has an Idempotency-Key and pages as the API does',
  async (operationId, { takesKey, query }) => {
    const { requests } = await callOf(operationId);
    const [first, second] = requests;
    expect(first?.headers.has('idempotency-key')).toBe(takesKey);
    const position = second && (second.query.get('cursor') ?? Number(second.query.get('skip')));
    expect(position).toBe(query.has('cursor') ? 'c' : query.has('skip') ? 100 : undefined);
    const limit = Number(first?.query.get('limit') ?? 0);
    expect(limit).toBeLessThanOrEqual(query.get('limit')?.maximum ?? 0);
  },
);
