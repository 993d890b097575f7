import { beforeEach, describe, expect, test } from '@jest/globals';
import { createIdFactory } from '@posthorn/domain/ids.ts';
import type {
  CreationClaim,
  CreationKeyStore,
} from '@posthorn/platform/mongo/companies/creation-keys.ts';
import type { Vault } from '@posthorn/platform/security/vault.ts';
import { randomBytes } from 'node:crypto';
import { routeTable } from '../../../../test/support/api/route-table.ts';
import {
  interruptAt,
  type Interruption,
  type Moment,
} from '../../../../test/support/process/interrupt-at.ts';
import { ApiError } from '../api-error.ts';
import { type CreateOnce, createCreateOnce, useOf } from './creations.ts';
import type { ApiResponse, Origin } from './route.ts';

const TWO_MINUTES_MS = 120_000;
const DAY_MS = 86_400_000;

let nowMs: number;
let keys: CreationKeyStore;
/** The things that exist, by their ids. */
let things: Map<string, string>;
const newId = createIdFactory({ nowMs: () => 1_000, randomBytes });

beforeEach(() => {
  nowMs = 0;
  keys = createMemoryKeys();
  things = new Map();
});

function createMemoryKeys(): CreationKeyStore {
  const claims = new Map<
    string,
    CreationClaim & { status: 'running' | 'interrupted' | 'done'; atMs: number; heldAtMs: number }
  >();
  const ofHolder = (key: object, holder: string) => {
    const found = claims.get(JSON.stringify(key));
    return found?.holder === holder ? found : undefined;
  };
  const own: CreationKeyStore = {
    async claim(key, claim) {
      await Promise.resolve();
      const found = claims.get(JSON.stringify(key));
      if (!found) {
        const set = { status: 'running', atMs: nowMs, heldAtMs: nowMs } as const;
        claims.set(JSON.stringify(key), { ...claim, ...set });
        return null;
      }
      const { atMs, heldAtMs, ...claimed } = found;
      return { ...claimed, ageMs: nowMs - atMs, heldMs: nowMs - heldAtMs, storedBytes: 100 };
    },
    takeOver(key, from, holder) {
      const found = ofHolder(key, from);
      if (found) Object.assign(found, { holder, status: 'running', heldAtMs: nowMs });
      return Promise.resolve(found !== undefined);
    },
    complete(key, holder, sealed) {
      Object.assign(ofHolder(key, holder) ?? {}, { sealed, status: 'done' });
      return Promise.resolve();
    },
    interrupt(key, holder) {
      Object.assign(ofHolder(key, holder) ?? {}, { status: 'interrupted' });
      return Promise.resolve();
    },
    free(key, holder) {
      if (ofHolder(key, holder)) claims.delete(JSON.stringify(key));
      return Promise.resolve();
    },
    readSealed: (key, holder) => Promise.resolve(ofHolder(key, holder)?.sealed ?? null),
  };
  return own;
}

/** Sealed texts are readable, and open in their place only. */
const vault: Pick<Vault, 'seal' | 'open'> = {
  seal: (plain, binding) => JSON.stringify({ plain, binding }),
  open(sealed, binding) {
    const value = JSON.parse(sealed) as { plain: string; binding: unknown };
    expect(value.binding).toEqual(binding);
    return value.plain;
  },
};

const makeThing = {
  insert(id: string, name: string): Promise<void> {
    if (things.has(id)) throw Object.assign(new Error('duplicate'), { code: 11_000 });
    things.set(id, name);
    return Promise.resolve();
  },
};

const gatewayWith = (interruption?: Interruption): CreateOnce =>
  createCreateOnce({
    keys: interruption ? interruption.wrap(keys) : keys,
    vault,
    newId,
    logger: { warn: () => undefined },
  });

interface Asked {
  key?: string;
  name?: string;
  params?: Record<string, string>;
  appId?: string;
  path?: string;
  make?: (origin: Origin, name: string) => Promise<unknown>;
}

/** Creates a thing as a route does: a repeat finds what an earlier request has made. */
function ask(createOnce: CreateOnce, asked: Asked = {}): Promise<ApiResponse> {
  const { key = 'k', name = 'First', params = {}, appId = null, path = '/things' } = asked;
  const make = asked.make ?? (({ newId: id }: Origin) => makeThing.insert(id('app'), name));
  return createOnce(
    {
      route: { method: 'post', path, creation: { shownOnce: ['secret'] } },
      caller: { companyId: 'comp_a', appId },
      params,
      bytes: Buffer.from(name),
      key: asked.key === '' ? undefined : key,
      reserve: () => undefined,
    },
    {
      async create(origin, isRepeat) {
        const id = origin.newId('app');
        if (!(isRepeat && things.has(id))) await make(origin, name);
        return { data: { id, name, secret: 'hush' } };
      },
      showAgain: (response) => Promise.resolve(response),
    },
  );
}

const codeOf = (asked: Asked): Promise<string> =>
  ask(gatewayWith(), asked).then(
    () => 'created',
    (error: unknown) => (error instanceof ApiError ? error.code : 'another error'),
  );

const idsMade = (): string[] => [...things.keys()];

describe('a repeat with the same key', () => {
  test('gets the first response, without what is shown once', async () => {
    const first = await ask(gatewayWith());
    const again = await ask(gatewayWith());
    expect(first).toEqual({ data: { id: expect.any(String), name: 'First', secret: 'hush' } });
    expect(again).toEqual({
      data: { ...(first.data as object), secret: null },
      headers: { 'Idempotency-Replayed': 'true' },
    });
    expect(things.size).toBe(1);
  });

  test.each<[string, Asked]>([
    ['another body', { name: 'Second' }],
    ['another id in the address', { params: { appId: 'app_2' } }],
  ])('and %s is refused', async (_what, asked) => {
    await ask(gatewayWith());
    expect(await codeOf(asked)).toBe('idempotency_key_reused');
  });

  test.each<[string, Asked]>([
    ['another key', { key: 'k2' }],
    ['another route', { path: '/others' }],
    ['a caller of one app', { appId: 'app_1' }],
    ['a request without a key', { key: '' }],
  ])('is none for %s', async (_what, asked) => {
    await ask(gatewayWith());
    expect(await codeOf(asked)).toBe('created');
    expect(things.size).toBe(2);
  });

  test('is a new request after 24 hours', async () => {
    await ask(gatewayWith());
    nowMs = DAY_MS - 1;
    expect(await codeOf({ name: 'Second' })).toBe('idempotency_key_reused');
    nowMs = DAY_MS;
    expect(await codeOf({ name: 'Second' })).toBe('created');
    expect(things.size).toBe(2);
  });

  test('may come at once as often as it likes', async () => {
    const all = await Promise.all(Array.from({ length: 100 }, () => codeOf({})));
    expect(new Set(all)).toEqual(new Set(['created', 'idempotency_key_running']));
    expect(things.size).toBe(1);
  });
});

describe('a request that fails', () => {
  const refuse = (): Promise<never> => Promise.reject(new ApiError('quota_exceeded'));
  const fail = (): Promise<never> => Promise.reject(new ApiError('unavailable'));

  test('frees its key when it is refused', async () => {
    expect(await codeOf({ make: refuse })).toBe('quota_exceeded');
    expect(await codeOf({ name: 'Second' })).toBe('created');
  });

  test('keeps its key otherwise, for the same request at once', async () => {
    expect(await codeOf({ make: fail })).toBe('unavailable');
    expect(await codeOf({ name: 'Second' })).toBe('idempotency_key_reused');
    expect(await codeOf({})).toBe('created');
    expect(things.size).toBe(1);
  });

  test('keeps its key also when a repeat is refused: the first one may still create something', async () => {
    expect(await codeOf({ make: fail })).toBe('unavailable');
    expect(await codeOf({ make: refuse })).toBe('quota_exceeded');
    expect(await codeOf({ name: 'Second' })).toBe('idempotency_key_reused');
    expect(await codeOf({})).toBe('created');
    expect(things.size).toBe(1);
  });

  test('has the same seed when it is repeated', async () => {
    const seeds: string[] = [];
    const note = async ({ seed }: Origin): Promise<void> => {
      seeds.push((await seed()).toString('hex'));
      if (seeds.length === 1) throw new Error('the first one fails');
    };
    await codeOf({ make: note });
    await codeOf({ make: note });
    expect(seeds).toHaveLength(2);
    expect(new Set(seeds).size).toBe(1);
    expect(seeds[0]).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('a process that ends', () => {
  const CALLS = [1, 2, 3];
  test.each(
    (['before', 'after'] as Moment[]).flatMap((moment) =>
      CALLS.map((nth) => [moment, nth] as const),
    ),
  )('%s call %d makes no second thing when its client repeats', async (moment, nth) => {
    const interruption = interruptAt(nth, moment);
    const interrupted = interruption.wrap(makeThing);
    const make = ({ newId: id }: Origin, name: string) => interrupted.insert(id('app'), name);
    await ask(gatewayWith(interruption), { make }).catch(() => undefined);
    expect(interruption.wasReached()).toBe(true);
    const made = idsMade();

    nowMs = TWO_MINUTES_MS - 1;
    const early = await codeOf({});
    expect(['created', 'idempotency_key_running']).toContain(early);
    nowMs = TWO_MINUTES_MS;
    const { data } = await ask(gatewayWith());
    expect(things.size).toBe(1);
    if (made.length > 0) expect(data).toMatchObject({ id: made[0] });
    expect(await ask(gatewayWith())).toMatchObject({ data: { id: idsMade()[0] } });
  });
});

describe('the use of a key that another request has claimed', () => {
  const claimed = { holder: 'h', idPart: 'i', requestHash: 'a', storedBytes: 1 };
  test.each([
    ['running', { status: 'running', heldMs: TWO_MINUTES_MS - 1, ageMs: DAY_MS - 1 }],
    ['abandoned', { status: 'running', heldMs: TWO_MINUTES_MS, ageMs: DAY_MS - 1 }],
    ['abandoned', { status: 'interrupted', heldMs: 0, ageMs: 0 }],
    ['repeat', { status: 'done', heldMs: DAY_MS - 1, ageMs: DAY_MS - 1 }],
    ['expired', { status: 'done', heldMs: 0, ageMs: DAY_MS }],
  ] as const)('is %s: %j', (use, found) => {
    expect(useOf({ ...claimed, ...found }, () => true)).toBe(use);
    if (use !== 'expired') expect(useOf({ ...claimed, ...found }, () => false)).toBe('reused');
  });

  test('is expired without being opened: the encryption key may be gone', () => {
    const old = { ...claimed, status: 'done', heldMs: 0, ageMs: DAY_MS } as const;
    const open = (): never => {
      throw new Error('no such key');
    };
    expect(useOf(old, open)).toBe('expired');
  });
});

describe('the routes', () => {
  /** Messages have a mechanism of their own. */
  const MESSAGES = ['/webhook-messages', '/webhook-messages/batch'];
  /** A repeat changes nothing. */
  const REPEATABLE = [
    '/test-filter',
    '/projects/:projectId/import-event-types',
    '/resends/:resendId/abort',
    '/deliveries/:deliveryId/cancel',
    '/webhooks/:webhookId/cancel-pending',
    '/webhook-messages/:messageId/erase-payload',
    '/deliveries/:deliveryId/erase-responses',
    '/webhooks/:webhookId/hold',
    '/webhooks/:webhookId/resume',
    '/webhooks/:webhookId/ordering-keys/skip',
    '/apps/:appId/hold',
    '/apps/:appId/resume',
    '/people/:personId/end-sessions',
  ];

  test('that create something take a key, and no others do', () => {
    for (const { method, path, creation, headers = [], response } of routeTable()) {
      const takesKey = headers.some(({ name }) => name === 'Idempotency-Key');
      const name = `${method} ${path}`;
      expect([name, takesKey]).toEqual([name, method === 'post' && !REPEATABLE.includes(path)]);
      expect([name, creation !== undefined]).toEqual([name, takesKey && !MESSAGES.includes(path)]);
      const isRepeatable = REPEATABLE.includes(path);
      if (response.status !== 200) expect([name, takesKey || isRepeatable]).toEqual([name, true]);
    }
  });
});
