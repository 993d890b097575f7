import { beforeEach, describe, expect, test } from '@jest/globals';
import { checkHeaderBytes, createQuotas, describeNearQuota, type Quotas } from './quotas.ts';

const LIMITS = {
  QUOTA_PROJECTS_PER_COMPANY: 3,
  QUOTA_APPS_PER_COMPANY: 100,
  QUOTA_WEBHOOKS_PER_APP: 1,
  QUOTA_GLOBAL_WEBHOOKS_PER_PROJECT: 1,
  QUOTA_EVENT_TYPES_PER_PROJECT: 1,
  QUOTA_KEYS_PER_COMPANY: 1,
  invitations: 1_000,
  portalLinks: 1,
};

let stored: Map<string, number>;
let counts: number;
let nowMs: number;
let quotas: Quotas;
let near: string[];

beforeEach(() => {
  [stored, counts, nowMs] = [new Map<string, number>(), 0, 0];
  near = [];
  quotas = createQuotas({
    limits: LIMITS,
    monotonicMs: () => nowMs,
    onNear: (each) => near.push(describeNearQuota(each)),
  });
});

const pause = () => new Promise((resolve) => setImmediate(resolve));

function create(setting: keyof typeof LIMITS, ownerId = 'comp_1'): Promise<string> {
  return quotas.createWithin({
    setting,
    companyId: 'comp_1',
    ownerId,
    async count(upTo) {
      counts += 1;
      await pause();
      return Math.min(upTo, stored.get(ownerId) ?? 0);
    },
    async create() {
      await pause();
      stored.set(ownerId, (stored.get(ownerId) ?? 0) + 1);
      return 'created';
    },
  });
}

const settled = async (creations: Promise<string>[]) =>
  (await Promise.allSettled(creations)).filter(({ status }) => status === 'fulfilled').length;

describe('a quota [security]', () => {
  test('refuses what comes after the last one, with its limit and the name of its setting', async () => {
    expect(await settled([1, 2, 3].map(() => create('QUOTA_PROJECTS_PER_COMPANY')))).toBe(3);
    await expect(create('QUOTA_PROJECTS_PER_COMPANY')).rejects.toMatchObject({
      status: 409,
      code: 'quota_exceeded',
      message: 'The limit is 3 projects for each company (QUOTA_PROJECTS_PER_COMPANY).',
    });
  });

  test.each([3, 100] as const)('of %i holds when all come at once', async (limit) => {
    const setting = limit === 3 ? 'QUOTA_PROJECTS_PER_COMPANY' : 'QUOTA_APPS_PER_COMPANY';
    const creations = Array.from({ length: 150 }, () => create(setting));
    expect([await settled(creations), stored.get('comp_1')]).toEqual([limit, limit]);
  });

  test('of one owner is not used up by another one', async () => {
    await create('QUOTA_WEBHOOKS_PER_APP', 'app_1');
    await expect(create('QUOTA_WEBHOOKS_PER_APP', 'app_1')).rejects.toMatchObject({ status: 409 });
    expect(await create('QUOTA_WEBHOOKS_PER_APP', 'app_2')).toBe('created');
  });

  test('has room again when one was removed', async () => {
    await create('QUOTA_KEYS_PER_COMPANY');
    await expect(create('QUOTA_KEYS_PER_COMPANY')).rejects.toMatchObject({ status: 409 });
    stored.set('comp_1', 0);
    expect(await create('QUOTA_KEYS_PER_COMPANY')).toBe('created');
  });

  test('is counted once in ten seconds while there is much room, and sees what others have created', async () => {
    for (let n = 0; n < 50; n += 1) await create('QUOTA_APPS_PER_COMPANY');
    expect(counts).toBe(1);
    stored.set('comp_1', 100);
    nowMs += 10_000;
    await expect(create('QUOTA_APPS_PER_COMPANY')).rejects.toMatchObject({ status: 409 });
  });

  test('counts several that are created at once, and refuses them together', async () => {
    const some = (amount: number) =>
      quotas.createWithin({
        setting: 'QUOTA_APPS_PER_COMPANY',
        companyId: 'comp_1',
        ownerId: 'comp_1',
        amount,
        count: (upTo) => Promise.resolve(Math.min(upTo, stored.get('comp_1') ?? 0)),
        async create() {
          await pause();
          stored.set('comp_1', (stored.get('comp_1') ?? 0) + amount);
        },
      });
    await Promise.all([some(60), some(30)]);
    await expect(some(11)).rejects.toMatchObject({ status: 409 });
    await some(10);
    expect(stored.get('comp_1')).toBe(100);
    await expect(create('QUOTA_APPS_PER_COMPANY')).rejects.toMatchObject({ status: 409 });
  });

  test('of which 80 % is used is told once, until it was below', async () => {
    for (let n = 0; n < 79; n += 1) await create('QUOTA_APPS_PER_COMPANY');
    expect(near).toEqual([]);
    for (let n = 0; n < 15; n += 1) await create('QUOTA_APPS_PER_COMPANY');
    const told = 'comp_1 has 80 of 100 apps for each company (QUOTA_APPS_PER_COMPANY)';
    expect(near).toEqual([told]);
    stored.set('comp_1', 50);
    for (let n = 0; n < 40; n += 1) await create('QUOTA_APPS_PER_COMPANY');
    expect(near).toEqual([told, told]);
  });

  test('passes on why something was not created, and does not count it the next time', async () => {
    const away = new Error('MongoDB is away');
    const failing = quotas.createWithin({
      setting: 'QUOTA_WEBHOOKS_PER_APP',
      companyId: 'comp_1',
      ownerId: 'app_1',
      count: () => Promise.resolve(0),
      create: () => Promise.reject(away),
    });
    await expect(failing).rejects.toBe(away);
    expect(await create('QUOTA_WEBHOOKS_PER_APP', 'app_1')).toBe('created');
  });
});

describe('custom headers [security]', () => {
  test('may have as many bytes as the setting allows, names included', () => {
    const headers = [{ key: 'X-A', value: '12345' }];
    expect(() => {
      checkHeaderBytes(headers, 8);
    }).not.toThrow();
    expect(() => {
      checkHeaderBytes(headers, 7);
    }).toThrow('The limit is 7 bytes of custom headers for each webhook.');
  });

  test('that are left out are not checked', () => {
    expect(() => {
      checkHeaderBytes(undefined, 1);
    }).not.toThrow();
  });
});
