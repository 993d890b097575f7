import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiAnswer } from '../../support/api/api-client.ts';
import { eventually } from '../../support/time/eventually.ts';
import {
  aTime,
  anId,
  dataOf,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { createResources, type Resources, type ShownMessage } from '../../support/api/resources.ts';

const MESSAGES = '/api/v1/webhook-messages';

let posthorn: OwnCompany;
let receiver: Receiver;
let make: Resources;

beforeAll(async () => {
  posthorn = await joinShared('contract-after-retries');
  receiver = await startReceiver();
  make = createResources(posthorn.api);
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

const list = (query: string): Promise<ApiAnswer> => posthorn.api.get(`${MESSAGES}?${query}`);
const idsOf = async (query: string): Promise<string[]> =>
  dataOf<ShownMessage[]>(await list(query)).map(({ id }) => id);

/** An app with a webhook that succeeds, one that fails and one that is disabled. */
let appId: string;
let good: string;
let bad: string;
let off: string;
/** Messages by their final status. */
let delivered: ShownMessage;
let exhausted: ShownMessage;
let cancelled: ShownMessage;
let mixed: ShownMessage;

beforeAll(async () => {
  receiver.answerWith((response, received) => {
    if (received.path === '/hook/bad') {
      response.writeHead(503, { 'x-request-id': 'r-1', 'set-cookie': 'a=hush', server: 's' });
      response.end(`sorry ${'x'.repeat(5_000)}`);
    } else response.writeHead(204).end();
  });
  ({ id: appId } = await make.app());
  ({ id: good } = await make.webhook({ url: receiver.url, appId, eventTypes: ['x'] }));
  ({ id: bad } = await make.webhook({ url: `${receiver.url}/bad`, appId }));
  ({ id: off } = await make.webhook({ url: receiver.url, appId, disabled: true }));
  delivered = await make.message({ webhookId: good });
  exhausted = await make.message({ webhookId: bad });
  cancelled = await make.message({ webhookId: off });
  mixed = await make.message({ appId, eventType: 'x' });
  await eventually('final states', async () => {
    const shown = dataOf<ShownMessage[]>(await list(`webhookId=${bad}`));
    return shown.every(({ status }) => status === 'exhausted');
  });
  await make.deliveryOnce('delivered', String(delivered.deliveries[0]?.id));
}, 60_000);

describe('History · GET /api/v1/webhook-messages', () => {
  it('lists messages newest first, each with its status and its deliveries', async () => {
    const [newest, ...rest] = dataOf<ShownMessage[]>(await list(''));
    expect(rest.map(({ id }) => id)).toEqual([cancelled.id, exhausted.id, delivered.id]);
    expect(newest).toEqual({
      id: mixed.id,
      appId,
      eventType: 'x',
      status: 'exhausted',
      delivered: false,
      payload: '{"n":1}',
      createdAt: mixed.createdAt,
      updatedAt: aTime,
      deliveries: [
        { id: anId('dlv'), webhookId: good, status: 'delivered', attemptCount: 1 },
        { id: anId('dlv'), webhookId: bad, status: 'exhausted', attemptCount: 2 },
        { id: anId('dlv'), webhookId: off, status: 'cancelled', attemptCount: 0 },
      ],
    });
  });

  it.each<[string, () => string, () => ShownMessage[]]>([
    ['appId', () => `appId=${appId}`, () => [mixed]],
    ['app_id', () => `app_id=${appId}`, () => [mixed]],
    ['webhookId', () => `webhookId=${bad}`, () => [mixed, exhausted]],
    ['status delivered', () => 'status=delivered', () => [delivered]],
    ['status exhausted', () => 'status=exhausted', () => [mixed, exhausted]],
    ['status cancelled', () => 'status=cancelled', () => [cancelled]],
    ['status pending', () => 'status=pending', () => []],
    ['two filters', () => `webhookId=${bad}&appId=${appId}`, () => [mixed]],
    ['two that exclude each other', () => `webhookId=${bad}&status=cancelled`, () => []],
    ['status and app', () => `status=exhausted&appId=${appId}`, () => [mixed]],
    ['event type', () => 'eventType=x', () => [mixed]],
    ['event type and status', () => 'eventType=x&status=delivered', () => []],
    ['event type and webhook', () => `eventType=x&webhookId=${bad}`, () => [mixed]],
    ['an unknown app', () => 'appId=app_unknown', () => []],
  ])('filters by %s', async (_what, query, expected) => {
    expect(await idsOf(query())).toEqual(expected().map(({ id }) => id));
  });

  it('includes a message that was created exactly at from or at to', async () => {
    const at = exhausted.createdAt;
    const shifted = (ms: number) => new Date(Date.parse(at) + ms).toISOString();
    const own = `webhookId=${bad}`;
    expect(await idsOf(`${own}&from=${at}`)).toEqual([mixed.id, exhausted.id]);
    expect(await idsOf(`${own}&to=${at}`)).toEqual([exhausted.id]);
    expect(await idsOf(`${own}&from=${at}&to=${at}`)).toEqual([exhausted.id]);
    expect(await idsOf(`${own}&from=${shifted(1)}`)).not.toContain(exhausted.id);
    expect(await idsOf(`${own}&to=${shifted(-1)}`)).toEqual([]);
    const offset = encodeURIComponent(`${at.slice(0, -1)}+00:00`);
    expect(await idsOf(`${own}&to=${offset}&status=exhausted`)).toEqual([exhausted.id]);
  });

  it.each(['', `&status=exhausted`, '&status=cancelled'])(
    'is paged by limit and cursor without a gap or a repeat%s',
    async (filter) => {
      const all = await idsOf(`limit=100${filter}`);
      const seen: string[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const next: string = cursor && `&cursor=${cursor}`;
        const answer = await list(`limit=1${filter}${next}`);
        seen.push(...dataOf<ShownMessage[]>(answer).map(({ id }) => id));
        cursor = answer.body.nextCursor ?? null;
      }
      expect(seen).toEqual(all);
      expect((await list(`limit=100${filter}`)).body.nextCursor).toBeNull();
    },
  );

  it('returns 50 messages when no limit is given', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url, disabled: true });
    await Promise.all(Array.from({ length: 51 }, () => make.message({ webhookId })));
    const answer = await list(`webhookId=${webhookId}`);
    expect(answer.body.data).toHaveLength(50);
    expect(
      await idsOf(`webhookId=${webhookId}&cursor=${answer.body.nextCursor ?? ''}`),
    ).toHaveLength(1);
  });

  it.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['cursor=x', 'cursor'],
    ['status=done', 'status'],
    ['from=yesterday', 'from'],
    ['to=2026-01-31', 'to'],
    ['from=1700000000', 'from'],
    ['skip=1', 'skip'],
    ['delivered=true', 'delivered'],
  ])('refuses %s', async (query, problem) => {
    expectInvalid(await list(query), problem);
  });
});

describe('History · GET /api/v1/webhook-messages/{id}', () => {
  it('returns the message in its current state, with the fields of its creation', async () => {
    const shown = dataOf<ShownMessage>(await posthorn.api.get(`${MESSAGES}/${exhausted.id}`));
    expect(shown).toEqual({
      ...exhausted,
      appId: null,
      eventType: null,
      status: 'exhausted',
      updatedAt: aTime,
      deliveryAttempt: {
        id: anId('att'),
        processed: true,
        resend: false,
        statusCode: 503,
        response: expect.stringMatching(/^sorry x+$/),
        headers: exhausted.headers,
        createdAt: aTime,
        updatedAt: aTime,
      },
      deliveries: [{ ...exhausted.deliveries[0], status: 'exhausted', attemptCount: 2 }],
    });
  });

  it.each(['', '/deliveries'])('returns 404 for an unknown message%s', async (rest) => {
    expectNotFound(await posthorn.api.get(`${MESSAGES}/msg_${'0'.repeat(26)}${rest}`));
  });
});
