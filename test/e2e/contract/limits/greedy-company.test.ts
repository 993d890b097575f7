import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiAnswer, ApiClient } from '../../../support/api/api-client.ts';
import { createCompany, type Company } from '../../../support/process/companies.ts';
import { joinWithGateway, type OwnGateway } from '../../../support/process/shared-posthorn.ts';

const WEBHOOKS = 300;
const PART_OF_CREATION = 20;
/** 8 KiB of custom headers and 11 kB of event types: 21 kB for each webhook in a list. */
const CUSTOM_HEADERS = ['X-Wide-1', 'X-Wide-2'].map((key) => ({ key, value: 'v'.repeat(3_900) }));
const EVENT_TYPES = Array.from({ length: 100 }, (_, n) => `t${n}.${'e'.repeat(110)}`);

let posthorn: OwnGateway;
let greedy: ApiClient;
let other: Company;
let appId: string;

const times = <T>(count: number, run: (n: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, n) => run(n)));

async function createWidest(n: number): Promise<void> {
  const url = `http://127.0.0.1:19999/${n}`;
  const eventTypes = n % 2 === 0 ? EVENT_TYPES : [];
  const fields = { url, appId, customHeaders: CUSTOM_HEADERS, eventTypes };
  const { status } = await greedy.post('/webhooks', fields);
  expect(status).toBe(201);
}

/** Statuses and codes, each once. */
function kindsOf(answers: readonly ApiAnswer[]): string[] {
  const kinds = answers.map(({ status, body }) => [status, body.code].join(' ').trim());
  return [...new Set(kinds)].sort();
}

describe('A company that takes all it can get', () => {
  beforeAll(async () => {
    posthorn = await joinWithGateway('contract', { NODE_OPTIONS: '--max-old-space-size=256' });
    greedy = posthorn.api;
    other = await createCompany(posthorn, 'Other');
    ({ appId } = await greedy.createTarget('http://127.0.0.1:19999/first'));
    for (let from = 0; from < WEBHOOKS; from += PART_OF_CREATION) {
      await times(PART_OF_CREATION, (n) => createWidest(from + n));
    }
  }, 120_000);

  afterAll(() => posthorn.stop());

  it('does not delay the others: ten requests are answered before its long lists are', async () => {
    let listed = 0;
    const lists = times(6, async () => {
      const answer = await greedy.get('/webhooks?limit=1000');
      listed += 1;
      return answer;
    });
    for (let n = 0; n < 10; n += 1) {
      expect((await other.api.get('/webhooks')).status).toBe(200);
    }
    expect(listed).toBe(0);
    expect(kindsOf(await lists)).toEqual(['200']);
  });

  it('is told to wait when the gateway has no more memory for it, and everybody else is served', async () => {
    const payload = { text: 'x'.repeat(250_000) };
    const target = await other.api.createTarget('http://127.0.0.1:19999/other');
    const demands = Promise.all([
      times(60, () => greedy.get('/webhooks?limit=1000')),
      times(60, () => greedy.post('/webhook-messages', { appId, payload })),
      times(20, () => greedy.get('/api/v1/webhook-messages?limit=100')),
    ]);
    const sent = await times(30, () =>
      other.api.post('/webhook-messages', { webhookId: target.webhookId, payload: {} }),
    );
    expect(kindsOf(sent)).toEqual(['202']);

    const [lists, messages, pages] = await demands;
    expect(['200', '503 unavailable']).toEqual(expect.arrayContaining(kindsOf(lists)));
    expect(['202', '503 unavailable']).toEqual(expect.arrayContaining(kindsOf(messages)));
    expect(['200', '503 unavailable']).toEqual(expect.arrayContaining(kindsOf(pages)));
    expect(kindsOf([...lists, ...messages])).toContain('503 unavailable');
    expect(posthorn.gateway.isRunning()).toBe(true);
  });
});
