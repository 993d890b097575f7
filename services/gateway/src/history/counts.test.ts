import { beforeEach, describe, expect, test } from '@jest/globals';
import type { OpenCircuit } from '@posthorn/platform/redis/open-circuits.ts';
import { readCircuits } from './counts.ts';

const WEBHOOKS = [
  { id: 'wh_1', url: 'https://a.example', appId: 'app_1' },
  { id: 'wh_2', url: 'https://b.example', appId: null },
];
const OPEN: OpenCircuit[] = [
  { webhookId: 'wh_1', probeAtMs: 9, sinceMs: 5 },
  { webhookId: 'wh_removed', probeAtMs: 9, sinceMs: 1 },
  { webhookId: 'wh_2', probeAtMs: 8, sinceMs: 3 },
];

let list: (companyId: string) => Promise<OpenCircuit[]>;

beforeEach(() => {
  list = (companyId) => Promise.resolve(companyId === 'comp_a' ? OPEN : []);
});

function read(companyId: string, filter: { appId?: string; webhookId?: string }) {
  const readOutlines = (_company: string, ids: readonly string[]) =>
    Promise.resolve(
      new Map(WEBHOOKS.filter(({ id }) => ids.includes(id)).map((each) => [each.id, each])),
    );
  return readCircuits({ circuits: { list: (id) => list(id) }, readOutlines }, companyId, filter);
}

describe('the open circuits of a company', () => {
  test('are those of its webhooks, the oldest first', async () => {
    const idsOf = async (filter: object) =>
      (await read('comp_a', filter)).map(({ webhookId }) => webhookId);
    expect(await idsOf({})).toEqual(['wh_2', 'wh_1']);
    expect(await idsOf({ appId: 'app_1' })).toEqual(['wh_1']);
    expect(await idsOf({ webhookId: 'wh_2' })).toEqual(['wh_2']);
    expect(await idsOf({ webhookId: 'wh_removed' })).toEqual([]);
  });

  test('are read without those of others', async () => {
    expect(await read('comp_b', {})).toEqual([]);
  });

  test('are not known without Redis, and asked for again with the next request', async () => {
    const works = list;
    list = () => Promise.reject(new Error('away'));
    await expect(read('comp_a', {})).rejects.toMatchObject({ status: 503, code: 'unavailable' });
    list = works;
    expect(await read('comp_a', {})).toHaveLength(2);
  });
});
