import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Scope } from '@posthorn/domain/access.ts';
import type {
  AuditedAction,
  AuditedResult,
  AuditLog,
} from '@posthorn/platform/mongo/companies/audit-log.ts';
import { routeTable } from '../../../../test/support/api/route-table.ts';
import { ApiError, unavailable } from '../api-error.ts';
import { createRecordRequest, refusalOf } from './audit-requests.ts';
import { type ApiResponse, NO_FIELDS, pathsOf, type Route } from './route.ts';

const nameOf = ({ method, path }: Route): string => `${method} ${path}`;

describe('the route table [security]', () => {
  const routes = routeTable();

  test('names what the audit log says of every route that changes something', () => {
    const changing = routes.filter(({ method }) => method !== 'get');
    expect(changing.length).toBeGreaterThan(15);
    const unaudited = changing.filter(({ audit }) => audit === undefined).map(nameOf);
    // Messages are their own history, and a test of a filter changes nothing.
    expect(unaudited).toEqual([
      'post /test-filter',
      'post /webhook-messages',
      'post /webhook-messages/batch',
    ]);
  });

  test('names it for every route that shows the secret of a webhook', () => {
    const showing = routes.filter(({ response: { data } }) => {
      return data && JSON.stringify(data.toJSONSchema()).includes('"secret"');
    });
    expect(showing.length).toBeGreaterThan(4);
    expect(showing.filter(({ audit }) => audit === undefined).map(nameOf)).toEqual([]);
  });

  test('has an id for the target in the path, or in the response', () => {
    const without = routes
      .filter(({ audit, method }) => audit && audit.target !== 'company' && method !== 'get')
      .filter((each) => !pathsOf(each)[0].includes(':'))
      .filter(({ response: { status } }) => status !== 201 && status !== 202);
    expect(without.map(nameOf)).toEqual([]);
  });
});

let changes: [AuditedAction, AuditedResult][];
let reads: [AuditedAction, number][];
let longReads: AuditedAction[];
const log: AuditLog = {
  async recordChange(action, make, resultOf) {
    const result = await make();
    changes.push([action, resultOf?.(result) ?? {}]);
    return result;
  },
  recordAfterReads: (action, make, resultOf) =>
    log.recordChange(action, () => make(Promise.resolve()), resultOf),
  recordRead: (action, count) => Promise.resolve(void reads.push([action, count])),
  recordParts: (action, parts) => {
    longReads.push(action);
    return parts;
  },
};
const record = createRecordRequest(log);

beforeEach(() => {
  [changes, reads, longReads] = [[], [], []];
});

function asked(scopes: Scope[] = ['admin'], params: Record<string, string> = {}, fields = {}) {
  const caller = { companyId: 'comp_a', keyId: 'key_1', scopes, appId: null };
  return { caller, requestId: 'request-1', clientAddress: '192.0.2.7', params, fields };
}

const UPDATE = { method: 'put', audit: { action: 'webhook.updated', target: 'webhook' } } as const;
const CREATE = { method: 'post', audit: { action: 'webhook.created', target: 'webhook' } } as const;
const READ = {
  method: 'get',
  audit: { action: 'webhook.secrets_read', target: 'webhook', secretsFor: 'webhooks:write' },
} as const;
const respond = (response: ApiResponse) => () => Promise.resolve(response);

async function* parts(...each: number[][]): AsyncGenerator<number[]> {
  for (const part of each) yield await Promise.resolve(part);
}

describe('a request that changes something [security]', () => {
  test('is recorded with its key, its address, what it asked for and what came of it', async () => {
    const request = asked(['admin'], { webhookId: 'wh_1' }, { name: 'New', hmacSecret: 'hush' });
    const changed = { before: { name: 'Old' }, after: { name: 'New' } };
    await record(UPDATE, request, respond({ changed }));
    const hidden = { field: 'hmacSecret', before: null, after: '********' };
    const action = {
      companyId: 'comp_a',
      action: 'webhook.updated',
      actor: { kind: 'apiKey', keyId: 'key_1' },
      target: { kind: 'webhook', id: 'wh_1' },
      clientAddress: '192.0.2.7',
      requestId: 'request-1',
      changes: [{ field: 'name', before: null, after: 'New' }, hidden],
    };
    const result = { createdId: null, changes: [{ field: 'name', before: 'Old', after: 'New' }] };
    expect(changes).toEqual([[action, result]]);
  });

  test('a request that creates something is recorded with its new id', async () => {
    await record(CREATE, asked(), respond({ data: { id: 'wh_new' } }));
    expect(changes).toMatchObject([[{ target: { id: null } }, { createdId: 'wh_new' }]]);
  });

  test('an upsert is recorded as what it did, and until then as what it looked like', async () => {
    const body = NO_FIELDS;
    const response = { status: 201, message: 'Created' } as const;
    const handle = () => Promise.resolve({});
    const upsert = { body, action: 'webhook.created', response, errors: [], handle } as const;
    const route = { ...UPDATE, upsert };
    const byUid = asked(['admin'], { webhookId: 'uid:a' });
    const isCreated = respond({ data: { id: 'wh_1' }, isCreated: true });
    await record(route, { ...byUid, creates: true }, isCreated);
    const isFound = respond({ data: { id: 'wh_1' }, isCreated: false });
    await record(route, { ...byUid, creates: true }, isFound);
    await record(route, asked(['admin'], { webhookId: 'wh_0' }), isCreated);
    expect(changes).toMatchObject([
      [
        { action: 'webhook.created', target: { id: null } },
        { action: 'webhook.created', id: 'wh_1' },
      ],
      [
        { action: 'webhook.created', target: { id: null } },
        { action: 'webhook.updated', id: 'wh_1' },
      ],
      [
        { action: 'webhook.updated', target: { id: 'wh_0' } },
        { action: 'webhook.created', id: 'wh_1' },
      ],
    ]);
  });

  test('has an id of bounded length, whatever is in the path', async () => {
    await record(UPDATE, asked(['admin'], { webhookId: 'x'.repeat(9_000) }), respond({}));
    expect(changes[0]?.[0].target.id).toBe('x'.repeat(128));
  });

  test('is recorded as refused for failures of the client only', () => {
    expect(refusalOf(new ApiError('not_found', 'No.'))).toBe('not_found');
    expect(refusalOf(unavailable('mongodb_unavailable'))).toBeNull();
    expect(refusalOf(new Error('no answer'))).toBeNull();
  });
});

describe('a request that reads [security]', () => {
  test('is recorded when its key sees secrets', async () => {
    const shown = { data: { id: 'wh_1' } };
    const request = asked(['read', 'webhooks:write'], { webhookId: 'wh_1' });
    expect(await record(READ, request, respond(shown))).toBe(shown);
    expect(reads).toMatchObject([[{ target: { kind: 'webhook', id: 'wh_1' } }, 1]]);
    expect(await record(READ, asked(['read']), respond(shown))).toBe(shown);
    expect(await record({ method: 'get' }, asked(), respond(shown))).toBe(shown);
    expect(reads).toHaveLength(1);
  });

  test('a list is recorded once, with the number of webhooks', async () => {
    const listed = await record(READ, asked(), respond({ pages: parts([1, 2, 3]) }));
    expect(listed).toEqual({ data: [1, 2, 3] });
    expect(reads).toMatchObject([[{ target: { id: null } }, 3]]);
  });

  test('a long list is recorded part by part', async () => {
    // More than an ordinary response has.
    const part = Array.from({ length: 40 }, (_, n) => n);
    const { pages } = await record(READ, asked(), respond({ pages: parts(part, part, part) }));
    expect((await Array.fromAsync(pages ?? [])).flat()).toHaveLength(120);
    expect([reads.length, longReads.length]).toEqual([0, 1]);
  });

  test('a read that shows no secrets, as it was asked, is not recorded', async () => {
    const shown = { data: { id: 'wh_1' }, hidesSecrets: true };
    expect(await record(READ, asked(), respond(shown))).toBe(shown);
    expect(reads).toEqual([]);
  });

  test('a read that fails is not recorded: nothing was shown', async () => {
    const fail = () => Promise.reject(new ApiError('not_found', 'No.'));
    await expect(record(READ, asked(), fail)).rejects.toThrow('No.');
    expect(reads).toEqual([]);
  });
});
