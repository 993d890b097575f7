import { describe, expect, it } from '@jest/globals';
import { Posthorn } from '@posthorn/client';
import {
  holderOfThisProcess,
  isAbandoned,
  LEASE_MS,
  metadataOf,
  secretOf,
  WebhookLease,
} from './lease.ts';

const NOW_MS = Date.parse('2026-01-31T09:30:00.000Z');
const SELF = { host: 'laptop 1', pid: 17 };

describe('isAbandoned', () => {
  const judge = (changes: Record<string, string>, running: readonly number[] = []): boolean =>
    isAbandoned({ ...metadataOf({ ...SELF, pid: 18 }, NOW_MS), ...changes }, SELF, {
      nowMs: NOW_MS,
      isRunning: (pid) => running.includes(pid),
    });

  it('is true when the process on the same host is gone', () => {
    expect(judge({})).toBe(true);
    expect(judge({}, [18])).toBe(false);
  });

  it('is false on another host, also of the same name, until it has expired', () => {
    expect(judge({ host: 'laptop 2' })).toBe(false);
    const expiresAt = new Date(NOW_MS).toISOString();
    expect(judge({ host: 'laptop 2', expiresAt }, [18])).toBe(true);
  });

  it('is false for containers of one name and address, on one machine or two', () => {
    const first = {
      platform: 'linux',
      bootId: '1',
      processNamespace: 'pid:[1]',
      addresses: ['02:42:ac:11:00:02'],
    };
    const isAbandonedFor = (machine: typeof first): boolean => {
      const { pid, host } = holderOfThisProcess(machine);
      const left = metadataOf({ ...holderOfThisProcess(first), pid: pid + 1 }, NOW_MS);
      const now = { nowMs: NOW_MS, isRunning: () => false };
      return isAbandoned(left, { pid, host }, now);
    };
    expect(isAbandonedFor(first)).toBe(true);
    expect(isAbandonedFor({ ...first, bootId: '2' })).toBe(false);
    expect(isAbandonedFor({ ...first, processNamespace: 'pid:[2]' })).toBe(false);
    expect(holderOfThisProcess()).toEqual(holderOfThisProcess());
  });

  it('is true for a process before this one with the same number', () => {
    expect(judge({ pid: '17' }, [17])).toBe(true);
  });

  it('is false for webhooks that are not of listen, and without a time', () => {
    expect(judge({ posthornListen: 'false' })).toBe(false);
    expect(judge({ host: 'other', expiresAt: 'soon' })).toBe(false);
  });
});

interface StoredWebhook {
  id: string;
  secret: string;
  metadata: Record<string, string>;
}

/** An API in memory with the operations that a lease uses. */
function createApi() {
  const webhooks = new Map<string, StoredWebhook>();
  const state = { isDown: false, dateMs: NOW_MS };
  let ids = 0;
  const answer = (status: number, data?: unknown): Response =>
    Response.json(
      status < 400 ? { success: true, message: '', data } : { success: false, code: 'not_found' },
      { status, headers: { date: new Date(state.dateMs).toUTCString() } },
    );
  const handle = (method: string, path: string, body: Partial<StoredWebhook>): Response => {
    if (path === '/me') return answer(200, {});
    if (path === '/find-webhooks') return answer(200, [...webhooks.values()]);
    if (method === 'POST') {
      const webhook = { metadata: {}, secret: '', ...body, id: `wh_${++ids}` };
      webhooks.set(webhook.id, webhook);
      return answer(201, webhook);
    }
    const webhook = webhooks.get(path.split('/').at(-1) ?? '');
    if (!webhook) return answer(404);
    if (method === 'DELETE') webhooks.delete(webhook.id);
    return answer(200, Object.assign(webhook, body));
  };
  const api = new Posthorn({
    apiKey: 'key',
    baseUrl: 'http://127.0.0.1:1',
    maxRetries: 0,
    fetch: (url, { method = 'GET', body }) => {
      if (state.isDown) return Promise.reject(new Error('no network'));
      const path = new URL(url).pathname.replace('/api/v1', '');
      const given = typeof body === 'string' ? body : '{}';
      return Promise.resolve(handle(method, path, JSON.parse(given) as Partial<StoredWebhook>));
    },
  });
  return { api, webhooks, state };
}

function createLease(api: Posthorn) {
  const notes: string[] = [];
  const lease = new WebhookLease({
    api,
    holder: SELF,
    url: 'http://127.0.0.1:4242/',
    secret: 'whsec_first',
    eventTypes: [],
    findApp: () => Promise.resolve('app_1'),
    isRunning: (pid) => pid === 99,
    signal: new AbortController().signal,
    note: (text) => notes.push(text),
  });
  return { lease, notes };
}

describe('WebhookLease', () => {
  it('deletes what is abandoned, and nothing else', async () => {
    const { api, webhooks } = createApi();
    const add = (id: string, metadata: Record<string, string>): unknown =>
      webhooks.set(id, { id, secret: '', metadata });
    add('wh_gone', metadataOf({ ...SELF, pid: 98 }, NOW_MS));
    add('wh_running', metadataOf({ ...SELF, pid: 99 }, NOW_MS));
    add('wh_customer', { posthornListens: 'true' });
    const { lease } = createLease(api);
    await lease.open();
    expect([...webhooks.keys()]).toEqual(['wh_running', 'wh_customer', 'wh_1']);
    await lease.close();
    expect([...webhooks.keys()]).toEqual(['wh_running', 'wh_customer']);
  });

  it('extends the lease by the clock of the API', async () => {
    const { api, webhooks, state } = createApi();
    const { lease } = createLease(api);
    await lease.open();
    state.dateMs += 60_000;
    await lease.renew();
    await lease.renew();
    const { expiresAt = '' } = webhooks.get('wh_1')?.metadata ?? {};
    // The header has seconds.
    const lateMs = Date.parse(expiresAt) - (state.dateMs + LEASE_MS);
    expect(Math.abs(lateMs)).toBeLessThan(30_000);
  });

  it('creates the webhook again when somebody has deleted it', async () => {
    const { api, webhooks } = createApi();
    const { lease, notes } = createLease(api);
    await lease.open();
    webhooks.clear();
    await lease.renew();
    expect([...webhooks.keys()]).toEqual(['wh_2']);
    expect(lease.webhookId).toBe('wh_2');
    expect(notes).toEqual(['Somebody has deleted the webhook wh_1: it is wh_2 now.']);
  });

  it('notes an API that does not answer once, and goes on', async () => {
    const { api, state } = createApi();
    const { lease, notes } = createLease(api);
    await lease.open();
    state.isDown = true;
    await lease.renew();
    await lease.renew();
    state.isDown = false;
    await lease.renew();
    expect(notes).toHaveLength(2);
    expect(notes[1]).toBe('The API answers again.');
  });

  it('accepts the secret of a rotation beside the one before', async () => {
    const { api, webhooks } = createApi();
    const { lease } = createLease(api);
    await lease.open();
    Object.assign(webhooks.get('wh_1') ?? {}, { secret: 'whsec_second' });
    await lease.renew();
    expect(lease.secrets).toEqual(['whsec_second', 'whsec_first']);
  });
});

it('derives the same secret from a key each time, and another one from another key', () => {
  expect(secretOf('phk_1')).toBe(secretOf('phk_1'));
  expect(secretOf('phk_1')).not.toBe(secretOf('phk_2'));
  expect(Buffer.from(secretOf('phk_1').slice(6), 'base64')).toHaveLength(32);
});
