import { beforeEach, describe, expect, test } from '@jest/globals';
import { timeMsOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import type { InsertOutcome } from '@posthorn/platform/mongo/messages/messages.ts';
import { type OpenedWebhook, targetListOf } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { CountedMessage } from '@posthorn/platform/mongo/messages/write-stats.ts';
import { countingIds } from '../../../../test/support/samples/sample-message.ts';
import { openedWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { toApiError, unavailable } from '../api-error.ts';
import type { KnownEventType, MessagePolicy } from '../catalogue/message-policy.ts';
import type { CheckOutcome } from '../catalogue/payload-checks.ts';
import type { Outbox } from '../outbox/outbox.ts';
import { PUBLISHED } from '../outbox/publication-waits.ts';
import {
  type Accepted,
  type AcceptMessages,
  createAcceptMessages,
  type NewMessage,
} from './accept-message.ts';
import { batchCostOf, fanOutMsOf, memoryBytesOf } from './accept-queue.ts';
import type { ResolvedRequest, SealedResponses } from './build-message.ts';

/** At which the first message is created. */
const NOW_MS = 1_700_000_000_000;
const DAY_MS = 86_400_000;

describe('accept message', () => {
  const UNAVAILABLE = { status: 503, code: 'unavailable', headers: { 'Retry-After': '2' } };
  const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

  let batches: Message[][];
  let counts: CountedMessage[];
  let hasRoomForCounts: boolean;
  let webhooks: OpenedWebhook[] | null;
  /** What the store does with a batch. */
  let insertAll: (batch: readonly Message[]) => Promise<InsertOutcome[]>;
  let seal: SealedResponses['seal'];
  let whenPublished: Outbox['whenPublished'];
  let policy: MessagePolicy | undefined;
  /** The payloads of each check by a schema, and what becomes of one. */
  let checked: string[][];
  let outcomeOf: (payload: string) => CheckOutcome;
  let acceptMessages: AcceptMessages;

  const allAs = (outcome: InsertOutcome) => (batch: readonly Message[]) =>
    Promise.resolve(batch.map(() => outcome));

  beforeEach(() => {
    [batches, counts, hasRoomForCounts] = [[], [], true];
    webhooks = [openedWebhook(1, { secret: SECRET })];
    [policy, checked] = [undefined, []];
    outcomeOf = () => ({ problems: [] });
    insertAll = allAs('stored');
    whenPublished = () => {
      throw new Error('not in order');
    };
    seal = ({ id }, { headers }) => `sealed ${id} with ${headers.length} headers`;
    acceptMessages = createAcceptMessages({
      nowMs: () => NOW_MS,
      retentionMs: () => 30 * DAY_MS,
      maxLingerMs: 4,
      targets: {
        candidatesOf: () => {
          const list = webhooks && targetListOf(webhooks, webhooks[0] ?? null);
          return Promise.resolve(list && { ...list, ...(policy && { policy }) });
        },
      },
      checks: {
        check(_companyId, payloads) {
          checked.push(payloads.map(({ payload }) => payload));
          return Promise.resolve(payloads.map(({ payload }) => outcomeOf(payload)));
        },
      },
      outbox: {
        store: (batch) => {
          batches.push([...batch]);
          return insertAll(batch);
        },
        whenPublished: (message) => whenPublished(message),
      },
      counts: { add: (counted) => void counts.push(counted), hasRoom: () => hasRoomForCounts },
      responses: { seal: (...given) => seal(...given) },
      acceptQueueBytes: 67_108_864,
      monotonicMs: () => performance.now(),
      publisherId: () => 'gw_1',
      newId: countingIds(),
      logger: createLogger('test', 'silent'),
    });
  });

  function request(n: number, overrides: Partial<NewMessage> = {}): NewMessage {
    return {
      companyId: 'comp_a',
      address: { kind: 'webhook', webhookId: 'wh_1' },
      eventType: null,
      payload: `{"n":${n}}`,
      requestId: `request-${n}`,
      idempotency: null,
      ...overrides,
    };
  }

  /** Null for a message whose key another one has. */
  async function acceptOne(given: NewMessage): Promise<Accepted | null> {
    const [result] = await acceptMessages.accept([given]);
    if (result?.kind === 'failed') throw result.error;
    return result?.kind === 'accepted' ? result : null;
  }

  const acceptMany = (count: number, overrides: Partial<NewMessage> = {}) =>
    Promise.allSettled(Array.from({ length: count }, (_, n) => acceptOne(request(n, overrides))));
  const ids = (messages: readonly Message[]) => messages.map(({ id }) => id);

  describe('accepting a message', () => {
    test('counts it for its company, once it is stored and not otherwise', async () => {
      insertAll = (batch) =>
        Promise.resolve(batch.map(({ payload }) => (payload === '{"n":0}' ? 'stored' : 'refused')));
      await acceptMany(2);
      const [stored] = batches.flat();
      const createdAtMs = stored?.createdAtMs;
      expect(counts).toEqual([{ companyId: 'comp_a', createdAtMs, payloadBytes: 7 }]);
    });

    test('is refused while there is no memory to count it, and stores nothing', async () => {
      hasRoomForCounts = false;
      await expect(acceptOne(request(1))).rejects.toMatchObject(UNAVAILABLE);
      expect(batches).toEqual([]);
      hasRoomForCounts = true;
      await acceptOne(request(1));
      expect(counts).toHaveLength(1);
    });

    test('stores its time', async () => {
      await acceptOne(request(1, { given: { deliverAtMs: NOW_MS + 1_000 } }));
      expect(batches.flat()).toMatchObject([{ deliverAtMs: NOW_MS + 1_000 }]);
    });

    test('stores its end, in days after its creation', async () => {
      const accepted = await acceptOne(
        request(1, { given: { expiresAtMs: NOW_MS + 1, retentionDays: 30 } }),
      );
      const { expiresAtMs, removeAtMs, createdAtMs = 0 } = batches.flat()[0] ?? {};
      expect([expiresAtMs, removeAtMs]).toEqual([NOW_MS + 1, createdAtMs + 30 * DAY_MS]);
      expect(accepted?.message).toMatchObject({ expiresAtMs, removeAtMs });
    });

    test.each<[string, NewMessage['given'], string]>([
      ['that is over', { expiresAtMs: NOW_MS }, 'expiresAt'],
      ['beyond the retention', { retentionDays: 31 }, 'retentionDays'],
      [
        'before its time',
        { deliverAtMs: NOW_MS + 5_000, expiresAtMs: NOW_MS + 5_000 },
        'deliverAt',
      ],
      ['a day before its time', { deliverAtMs: NOW_MS + DAY_MS, retentionDays: 1 }, 'deliverAt'],
      ['and a time that is now', { deliverAtMs: NOW_MS + 999 }, 'deliverAt'],
      [
        'and a time more than 28 days ahead',
        { deliverAtMs: NOW_MS + 28 * DAY_MS + 1 },
        'deliverAt',
      ],
    ])('is refused with an end %s', async (_which, given = {}, path) => {
      const refusal = { status: 400, code: 'invalid_request', problems: [{ path }] };
      await expect(acceptOne(request(1, { given }))).rejects.toMatchObject(refusal);
      expect(batches).toEqual([]);
    });

    describe('to a project with a catalogue', () => {
      const schema = { id: 'comp_a/1', text: '{}', eventTypeId: 'proj_1/checked' };
      const types = new Map<string, KnownEventType>([
        ['free', { isArchived: false, schema: null }],
        ['checked', { isArchived: false, schema }],
        ['archived', { isArchived: true, schema }],
      ]);
      const typeOf = (name: string) => Promise.resolve(types.get(name) ?? null);
      const codesOf = async (eventTypes: (string | null)[], of: Partial<NewMessage> = {}) => {
        const requests = eventTypes.map((eventType, n) => request(n, { eventType, ...of }));
        const results = await acceptMessages.accept(requests);
        return results.map((each) =>
          each.kind === 'failed' ? toApiError(each.error).code : each.kind,
        );
      };
      const [ACCEPTED, UNKNOWN] = ['accepted', 'event_type_unknown'];

      test('is refused alone with another event type, and its payload is not checked', async () => {
        policy = { level: 'known', typeOf };
        const sent = ['checked', null, 'unknown', 'archived', 'free'];
        expect(await codesOf(sent)).toEqual([ACCEPTED, UNKNOWN, UNKNOWN, UNKNOWN, ACCEPTED]);
        expect(checked).toEqual([]);
        expect(batches.flat()).toHaveLength(2);
        await expect(acceptOne(request(1))).rejects.toMatchObject({
          status: 422,
          problems: [{ path: 'eventType' }],
        });
      });

      test('is refused with a payload that does not meet the schema', async () => {
        policy = { level: 'validated', typeOf };
        const problems = Array.from({ length: 5 }, (_, n) => ({
          path: `payload.${n}`,
          message: 'm',
        }));
        outcomeOf = (payload) => ({ problems: payload === '{"n":1}' ? problems : [] });
        expect(await codesOf(['checked', 'checked', 'free', 'unknown'])).toEqual([
          ...[ACCEPTED, 'payload_invalid', ACCEPTED, UNKNOWN],
        ]);
        expect(checked).toEqual([['{"n":0}', '{"n":1}']]);
        await expect(acceptOne(request(1, { eventType: 'checked' }))).rejects.toMatchObject({
          status: 422,
          message: 'payload.0: m; payload.1: m; payload.2: m (and 2 more)',
          problems,
        });
      });

      test.each([{ kind: 'too_slow' }, { fault: 'endless' }] as const)(
        'is refused with a payload that cannot be checked: %j',
        async (outcome) => {
          policy = { level: 'validated', typeOf };
          outcomeOf = () => outcome;
          await expect(acceptOne(request(1, { eventType: 'checked' }))).rejects.toMatchObject({
            code: 'payload_invalid',
            problems: [{ path: 'payload' }],
          });
        },
      );

      test('is accepted as a test, whatever it is', async () => {
        policy = { level: 'validated', typeOf };
        expect(await codesOf([null, 'unknown', 'checked'], { isTest: true })).toEqual([
          ...[ACCEPTED, ACCEPTED, ACCEPTED],
        ]);
        expect(checked).toEqual([]);
      });
    });

    test('is accepted with times that are over when it was read from Kafka', async () => {
      await acceptOne(request(1, { given: { deliverAtMs: 2, expiresAtMs: 1 }, mayBeLate: true }));
      const [stored] = batches.flat();
      expect([stored?.expiresAtMs, stored?.deliverAtMs]).toEqual([1, undefined]);
    });

    test('returns the message as it was stored', async () => {
      const accepted = await acceptOne(request(1));
      const [stored] = batches.flat();
      expect(accepted?.message).toBe(stored);
      expect(stored).toMatchObject({
        companyId: 'comp_a',
        appId: null,
        requestId: 'request-1',
        publisherId: 'gw_1',
        targets: [openedWebhook(1).id],
        disabledTargets: new Set<string>(),
        idempotency: null,
      });
      expect(stored?.createdAtMs).toBe(timeMsOf(String(stored?.id)));
    });

    test('stores its app and which of its webhooks are disabled', async () => {
      webhooks = [openedWebhook(1, { secret: SECRET }), openedWebhook(2, { disabled: true })];
      const address = { kind: 'app' as const, appId: 'app_1', eventType: null };
      await acceptOne(request(1, { address }));
      const [on = '', off = ''] = [1, 2].map((n) => openedWebhook(n).id);
      expect(batches.flat()).toMatchObject([
        { appId: 'app_1', targets: [on, off], disabledTargets: new Set([off]) },
      ]);
    });

    test('is in order when it has an ordering key and an enabled webhook has an order', async () => {
      const isInOrder = async (given: NewMessage) => {
        await acceptOne(given);
        return batches.at(-1)?.map(({ isOrdered, orderingKey }) => [orderingKey, isOrdered]);
      };
      const keyed = request(1, { given: { orderingKey: 'order-17' } });
      whenPublished = () => PUBLISHED;
      webhooks = [openedWebhook(1), openedWebhook(2, { disabled: true, ordering: 'block' })];
      expect(await isInOrder(keyed)).toEqual([['order-17', undefined]]);
      webhooks = [openedWebhook(1), openedWebhook(2, { ordering: 'skip' })];
      expect(await isInOrder(keyed)).toEqual([['order-17', true]]);
      expect(await isInOrder(request(2))).toEqual([[undefined, undefined]]);
    });

    test('throws 404 for an unknown webhook and stores nothing', async () => {
      webhooks = null;
      await expect(acceptOne(request(1))).rejects.toMatchObject({
        status: 404,
        message: 'There is no such webhook.',
      });
      expect(batches).toEqual([]);
    });

    test('stores the sealed response in the same write when there is a key', async () => {
      const idempotency = { key: 'k', bodyHash: 'h' };
      const accepted = await acceptOne(request(1, { idempotency, showsHeaders: true }));
      const id = accepted?.message.id ?? '';
      expect(batches[0]).toMatchObject([
        { id, idempotency: { ...idempotency, answer: `sealed ${id} with 7 headers` } },
      ]);
    });

    test('of a batch has no first response to be stored: it shows no headers', async () => {
      const idempotency = { key: 'k', bodyHash: 'h' };
      expect(await acceptOne(request(1, { idempotency }))).toMatchObject({ shown: null });
      expect(batches[0]).toMatchObject([{ idempotency: { ...idempotency, answer: '' } }]);
    });
  });

  describe('a message in order', () => {
    /** The waits for the records of messages, by the number in their payload. */
    let waits: Map<string, PromiseWithResolvers<null> & { isGivenUp?: true }>;
    const keyed = (n: number, orderingKey = 'order-17') => request(n, { given: { orderingKey } });

    beforeEach(() => {
      waits = new Map();
      webhooks = [openedWebhook(1, { ordering: 'block' })];
      whenPublished = ({ id }) => {
        const wait = Promise.withResolvers<null>();
        const payload = batches.flat().find((message) => message.id === id)?.payload ?? '';
        waits.set(payload, wait);
        const giveUp = (): void => {
          waits.set(payload, { ...wait, isGivenUp: true });
          wait.reject(new Error('given up'));
        };
        return { published: wait.promise, giveUp };
      };
    });

    const waitOf = (n: number) => eventually('the wait', () => waits.get(`{"n":${n}}`) ?? null);

    test('is accepted once Kafka has its records, and no other message of its batch waits', async () => {
      const results: unknown[] = [];
      const accept = (given: NewMessage) =>
        acceptOne(given).then((accepted) => results.push(accepted?.message.payload));
      const all = [
        accept(keyed(1)),
        accept(request(2)),
        accept(request(3, { given: { tags: ['a'] } })),
      ];
      const wait = await waitOf(1);
      await eventually('the others', () => results.length === 2);
      expect(results).toEqual(['{"n":2}', '{"n":3}']);
      expect(acceptMessages.usedBytes()).toBeGreaterThan(0);
      wait.resolve(null);
      await Promise.all(all);
      expect([results.at(-1), acceptMessages.usedBytes()]).toEqual(['{"n":1}', 0]);
    });

    test('is unavailable when its records are left to others, and nothing behind it in order is stored', async () => {
      const options = { isInOrder: true } as const;
      const slices = Array.from({ length: 450 }, (_, n) => keyed(n));
      const accepting = acceptMessages.accept(slices, options);
      const waiting = await Promise.all(Array.from({ length: 400 }, (_, n) => waitOf(n)));
      const [first, ...others] = waiting;
      first?.reject(unavailable('kafka_unavailable'));
      for (const each of others) each.resolve(null);
      const results = await accepting;
      expect(results[0]).toMatchObject({ kind: 'failed', error: UNAVAILABLE });
      expect(results[1]).toMatchObject({ kind: 'accepted' });
      expect(results.slice(-50).every(({ kind }) => kind === 'failed')).toBe(true);
      expect(batches.flat().length).toBeLessThan(450);
    });

    test('is waited for until the deadline, and holds no memory afterwards', async () => {
      const deadline = new AbortController();
      const accepting = acceptMessages.accept([keyed(1)], { deadline: deadline.signal });
      await waitOf(1);
      deadline.abort();
      expect(await accepting).toMatchObject([{ kind: 'failed', error: UNAVAILABLE }]);
      expect(waits.get('{"n":1}')?.isGivenUp).toBe(true);
      await eventually('the memory', () => acceptMessages.usedBytes() === 0);
    });

    test('has its key settled before it is stored, where others are behind it', async () => {
      whenPublished = () => PUBLISHED;
      const settled: (readonly NewMessage[])[] = [];
      let settle = (): void => undefined;
      const settling = new Promise<void>((resolve) => (settle = resolve));
      const settleKeys = (requests: readonly NewMessage[]) => {
        settled.push(requests);
        return settling;
      };
      const idempotency = { key: 'k', bodyHash: 'h' };
      const first = { ...keyed(1), idempotency };
      const others = [{ ...request(2), idempotency }, keyed(3)];
      const options = { isInOrder: true, settleKeys } as const;
      const all = acceptMessages.accept([first, ...others], options);
      await eventually('the call', () => settled.length === 1);
      expect([settled, batches]).toEqual([[[first]], []]);
      settle();
      expect((await all).map(({ kind }) => kind)).toEqual(Array(3).fill('accepted'));
      await acceptMessages.accept([first], options);
      expect(settled).toHaveLength(1);
    });
  });

  describe('a batch of messages', () => {
    test('has ids that grow in the order of the inserts, across all batches', async () => {
      await acceptMany(1_000);
      expect(batches.length).toBeGreaterThan(1);
      const inserted = ids(batches.flat());
      expect(inserted).toHaveLength(1_000);
      expect([...inserted].sort()).toEqual(inserted);
    });

    test('gives each request the outcome of its own message', async () => {
      const cycle: InsertOutcome[] = ['stored', 'repeated', 'refused', 'unconfirmed'];
      const outcomeOf = ({ requestId }: Message) => cycle[Number(requestId.at(-1)) % 4] ?? 'stored';
      insertAll = (batch) => Promise.resolve(batch.map(outcomeOf));
      const settled = await acceptMany(8);
      const of = (outcome: InsertOutcome) =>
        ids(batches.flat().filter((message) => outcomeOf(message) === outcome));
      expect(settled).toHaveLength(8);
      for (const [n, result] of settled.entries()) {
        const expected = [
          { status: 'fulfilled', value: { message: { id: of('stored')[Math.floor(n / 4)] } } },
          { status: 'fulfilled', value: null },
          { status: 'rejected', reason: UNAVAILABLE },
          { status: 'rejected', reason: UNAVAILABLE },
        ][n % 4];
        expect(result).toMatchObject(expected ?? {});
      }
    });

    test('fails every one of its requests when the insert throws, and the next batch is stored', async () => {
      insertAll = () => Promise.reject(new Error('a bug'));
      for (const result of await acceptMany(3))
        expect(result).toMatchObject({ status: 'rejected' });
      insertAll = allAs('stored');
      expect(await acceptOne(request(1))).toMatchObject({
        message: { payload: '{"n":1}' },
      });
    });

    /** Inserts do not end until the returned function is called. */
    function blockInserts(): () => void {
      let unblock: () => void = () => undefined;
      const blocked = new Promise<void>((resolve) => (unblock = resolve));
      insertAll = async (batch) => {
        await blocked;
        return batch.map(() => 'stored');
      };
      return () => {
        unblock();
      };
    }

    test('loses only the message that cannot be built', async () => {
      seal = () => {
        throw new Error('a bug');
      };
      const idempotency = { key: 'k', bodyHash: 'h' };
      const keyed = acceptOne(request(1, { idempotency, showsHeaders: true }));
      const others = acceptMany(2);
      await expect(keyed).rejects.toThrow('a bug');
      expect((await others).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
      expect(batches.flat()).toHaveLength(2);
    });

    test('is awaited by a stop', async () => {
      const unblock = blockInserts();
      const accepted = acceptMany(3);
      await eventually('the insert', () => batches.length > 0);
      let isIdle = false;
      const idle = acceptMessages.idle().then(() => (isIdle = true));
      await new Promise(setImmediate);
      expect(isIdle).toBe(false);
      unblock();
      await idle;
      expect((await accepted).map(({ status }) => status)).toEqual(Array(3).fill('fulfilled'));
    });
  });
});

describe('request cost', () => {
  function request(payloadLength: number, webhookCount: number, disabled = 0): ResolvedRequest {
    const webhooks = Array.from({ length: webhookCount }, (_, n) =>
      openedWebhook(n + 1, { disabled: n < disabled }),
    );
    return {
      request: {
        companyId: 'comp_a',
        address: { kind: 'webhook', webhookId: 'wh_1' },
        eventType: null,
        payload: 'x'.repeat(payloadLength),
        requestId: 'request-1',
        idempotency: null,
      },
      ...targetListOf(webhooks, webhooks[0] ?? null),
    };
  }

  describe('a request', () => {
    test.each([
      [1_000, 1, 1],
      [16_383, 99, 1],
      [16_384, 1, 2],
      [2, 100, 2],
      [2, 10_000, 101],
      [262_144, 1, 17],
    ])('of %i characters to %i webhooks costs %i', (chars, webhooks, cost) => {
      expect(batchCostOf(request(chars, webhooks))).toBe(cost);
    });

    test('is alone in its batch when its 10,000 webhooks are disabled: their ids are stored twice', () => {
      expect(batchCostOf(request(2, 10_000, 10_000))).toBe(201);
    });

    test('a request is charged a fifth for a disabled webhook, which gets no record', () => {
      expect(fanOutMsOf(request(2, 10_000))).toBe(250);
      expect(fanOutMsOf(request(2, 10_000, 10_000))).toBe(50);
    });

    test('holds more memory with a longer payload and with more webhooks', () => {
      const bytes = memoryBytesOf(request(1_000, 1));
      expect(memoryBytesOf(request(2_000, 1)) - bytes).toBe(2_000);
      expect(memoryBytesOf(request(1_000, 11)) - bytes).toBe(3_000);
      const found = request(1_000, 1);
      const tagged = { ...found.request, given: { tags: ['a', 'bc'], externalId: 'def' } };
      expect(memoryBytesOf({ ...found, request: tagged }) - bytes).toBe(12);
    });
  });
});
