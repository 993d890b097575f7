import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import type { ClaimedKey, KeyHolder } from '@posthorn/platform/mongo/messages/idempotency-keys.ts';
import { Registry } from 'prom-client';
import { countingIds, sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { openedWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { ApiError } from '../api-error.ts';
import { headersOf } from '../history/sent-headers.ts';
import type { Accepted, AcceptResult, NewMessage } from './accept-message.ts';
import {
  type AcceptOutcome,
  createKeyedAccept,
  idempotencyOf,
  type KeyedAccept,
  keyUseOf,
} from './idempotency.ts';

const hashOf = (body: string): string =>
  idempotencyOf('k', Buffer.from(body))?.bodyHash ?? 'no key';

describe('idempotent accept', () => {
  const NOW_MS = 1_700_000_000_000;
  const DAY_MS = 86_400_000;
  const SHOWN = { signature: null, headers: [] };
  const webhook = openedWebhook(1);

  /** The messages under the unique index, by company and key. */
  let stored: Map<string, Message>;
  /** Every message that was accepted, also those without a key. */
  let accepted: Message[];
  let nowMs = NOW_MS;
  let newId: ReturnType<typeof countingIds>;
  let registry: Registry;
  let keyedAccept: KeyedAccept;
  let accepting: (request: NewMessage) => Promise<Accepted | null>;
  let find: (companyId: string, key: string) => Message | null;
  /** Bytes that were counted before they were read. */
  let reserved: number[];
  let reserve: (bytes: number) => void;
  /** A claim whose message is not stored. */
  let claimed: ClaimedKey | null;
  let released: (string | null)[];
  /** How often keys were looked up. */
  let lookUps: number;
  /** A look-up waits for it. */
  let looking: Promise<void>;
  /** A release waits for it. */
  let releasing: Promise<void>;
  /** What is published and stored, in this order. */
  let events: string[];
  let publishing: Promise<unknown>;

  /** As the store does: one write accepts the message and claims the key. */
  function accept(request: NewMessage): Promise<Accepted | null> {
    const { companyId, payload, idempotency, showsHeaders, given } = request;
    const answer = showsHeaders ? `first response to ${payload}` : '';
    const key = `${companyId}/${idempotency?.key ?? ''}`;
    if (idempotency && (stored.has(key) || claimed)) return Promise.resolve(null);
    const message = sampleMessage(newId('msg'), {
      companyId,
      payload,
      createdAtMs: nowMs,
      idempotency: idempotency && { ...idempotency, answer },
      ...(given?.orderingKey !== undefined && { isOrdered: true as const }),
    });
    if (idempotency) stored.set(key, message);
    accepted.push(message);
    events.push(`store ${message.id}`);
    return Promise.resolve({ message, shown: showsHeaders ? SHOWN : null });
  }

  async function resultOf(request: NewMessage): Promise<AcceptResult> {
    try {
      const result = await accepting(request);
      return result ? { kind: 'accepted', ...result } : { kind: 'repeated' };
    } catch (error) {
      return { kind: 'failed', error };
    }
  }

  beforeEach(() => {
    [accepted, nowMs, newId, lookUps] = [[], NOW_MS, countingIds(), 0];
    stored = new Map();
    [looking, releasing, publishing] = [Promise.resolve(), Promise.resolve(), Promise.resolve()];
    events = [];
    [claimed, released] = [null, []];
    [registry, accepting, reserved] = [new Registry(), accept, []];
    reserve = (bytes) => reserved.push(bytes);
    find = (companyId, key) => stored.get(`${companyId}/${key}`) ?? null;
    keyedAccept = createKeyedAccept({
      accept: async (requests, options) => {
        const settling = options?.isInOrder ? options.settleKeys?.(requests) : undefined;
        const error: unknown = await settling?.catch((thrown: unknown) => thrown);
        if (error !== undefined) return requests.map(() => ({ kind: 'failed', error }));
        return Promise.all(requests.map(resultOf));
      },
      outbox: {
        ensurePublished: ({ id }) => {
          events.push(`publish ${id}`);
          return { published: publishing, giveUp: () => void events.push(`give ${id} up`) };
        },
      },
      messages: {
        findKeyHolders: async (companyId, keys) => {
          lookUps += 1;
          await looking;
          const found = keys.map(
            (key) => [key, claimed ?? holderOf(find(companyId, key))] as const,
          );
          return new Map(found.flatMap(([key, each]) => (each ? [[key, each]] : [])));
        },
        findAccepted: (_companyId, id) =>
          Promise.resolve([...stored.values()].find((message) => message.id === id) ?? null),
        releaseKeys: (companyId, held) => {
          for (const { key, found } of held) {
            released.push(found.claimedFor);
            stored.delete(`${companyId}/${key}`);
          }
          claimed = null;
          return releasing;
        },
      },
      webhooks: { findTarget: () => Promise.resolve(webhook) },
      responses: { open: () => SHOWN },
      registry,
    });
  });

  function holderOf(message: Message | null) {
    if (!message?.idempotency) return null;
    const { id, createdAtMs, idempotency } = message;
    const { bodyHash } = idempotency;
    const ageMs = nowMs - createdAtMs;
    const kind = 'holder' as const;
    const { publisherId, isOrdered = false } = message;
    const sizes = { targetCount: 2, storedBytes: 1_000 };
    return { kind, id, ageMs, bodyHash, publisherId, isOrdered, ...sizes, claimedFor: id };
  }

  function post(key: string | undefined, payload = '{"n":1}', companyId = 'comp_a') {
    const address = { kind: 'webhook' as const, webhookId: 'wh_1' };
    const message = { companyId, address, eventType: null, payload, requestId: 'request-1' };
    const nextSlice = () => Promise.resolve();
    const idempotency = idempotencyOf(key, Buffer.from(payload));
    return keyedAccept.acceptOne({ ...message, idempotency }, { reserve, nextSlice });
  }

  async function lookups(): Promise<Record<string, number>> {
    const metric = await registry.getSingleMetric('posthorn_idempotency_lookups_total')?.get();
    const values = metric?.values ?? [];
    return Object.fromEntries(values.map(({ labels, value }) => [String(labels.result), value]));
  }

  describe('a request with an idempotency key', () => {
    test('is accepted the first time and gets the first response every other time', async () => {
      const first = await post('k');
      expect(first.isReplayed).toBe(false);
      expect(await post('k')).toEqual({ ...first, isReplayed: true });
      expect(await post('k')).toEqual({ ...first, isReplayed: true });
      expect(accepted).toHaveLength(1);
      expect(await lookups()).toEqual({ new: 1, repeated: 2 });
    });

    test('is refused with 422 when its body differs by a single byte', async () => {
      await post('k', '{"n":1}');
      const again = { status: 422, code: 'idempotency_key_reused' };
      await expect(post('k', '{"n":1} ')).rejects.toMatchObject(again);
      expect(accepted).toHaveLength(1);
    });

    test('is accepted once when 20 come at the same time, and all get the same message', async () => {
      const results = await Promise.all(Array.from({ length: 20 }, () => post('k')));
      expect(accepted).toHaveLength(1);
      expect(new Set(results.map(({ message }) => message.id)).size).toBe(1);
      expect(results.filter(({ isReplayed }) => !isReplayed)).toHaveLength(1);
    });

    test('is refused with 409 while the first request is not decided', async () => {
      find = () => null;
      accepting = () => Promise.resolve(null);
      await expect(post('k')).rejects.toMatchObject({
        status: 409,
        code: 'idempotency_key_running',
        headers: { 'Retry-After': '1' },
      });
    });

    test('is refused with 409 while a claim may still get its message, and is accepted afterwards', async () => {
      claimed = { kind: 'claimed', claimedFor: 'msg_crashed', ageMs: 119_999 };
      await expect(post('k')).rejects.toMatchObject({
        status: 409,
        code: 'idempotency_key_running',
      });
      expect([accepted, released]).toEqual([[], []]);
      claimed = { ...claimed, ageMs: 120_000 };
      expect((await post('k')).isReplayed).toBe(false);
      expect(released).toEqual(['msg_crashed']);
    });

    test('is not looked up when it is new', async () => {
      find = () => {
        throw new Error('the key is looked up');
      };
      expect((await post('k')).isReplayed).toBe(false);
    });

    test.each(['not_found', 'rate_limited'] as const)(
      'gets the first response although a new one would be refused with %s now',
      async (code) => {
        const first = await post('k');
        const refusal = new ApiError(code);
        accepting = () => Promise.reject(refusal);
        expect(await post('k')).toEqual({ ...first, isReplayed: true });
        const reused = { code: 'idempotency_key_reused' };
        await expect(post('k', '{"n":2}')).rejects.toMatchObject(reused);
        await expect(post('other')).rejects.toBe(refusal);
        nowMs += DAY_MS;
        await expect(post('k')).rejects.toBe(refusal);
        expect(released).toEqual([]);
      },
    );

    test('is not looked up when its own message may be stored', async () => {
      find = () => {
        throw new Error('the key is looked up');
      };
      const unconfirmed = new ApiError('unavailable');
      accepting = () => Promise.reject(unconfirmed);
      await expect(post('k')).rejects.toBe(unconfirmed);
    });

    test('counts the first response before it reads it, and reads nothing without room', async () => {
      await post('k');
      expect(reserved).toEqual([]);
      await post('k');
      expect(reserved).toEqual([4_000]);
      const full = new ApiError('unavailable', 'Send it again.');
      reserve = () => {
        throw full;
      };
      find = (companyId, key) => {
        const found = stored.get(`${companyId}/${key}`) ?? null;
        stored.clear();
        return found;
      };
      await expect(post('k')).rejects.toBe(full);
    });

    test('is refused with 409 when its message has expired since the look-up', async () => {
      await post('k');
      reserve = () => {
        stored.clear();
      };
      await expect(post('k')).rejects.toMatchObject({
        status: 409,
        code: 'idempotency_key_running',
      });
    });

    test('does not collide with the same key of another company', async () => {
      const mine = await post('k', '{"n":1}', 'comp_a');
      const theirs = await post('k', '{"n":2}', 'comp_b');
      expect([mine.isReplayed, theirs.isReplayed]).toEqual([false, false]);
      expect(accepted.map(({ companyId }) => companyId)).toEqual(['comp_a', 'comp_b']);
    });

    test('is a repeat for 24 hours and not a millisecond longer', async () => {
      await post('k', '{"n":1}');
      nowMs += DAY_MS - 1;
      expect((await post('k', '{"n":1}')).isReplayed).toBe(true);
      nowMs += 1;
      expect((await post('k', '{"n":2}')).isReplayed).toBe(false);
      expect((await post('k', '{"n":2}')).isReplayed).toBe(true);
      expect(accepted).toHaveLength(2);
    });

    test('releases an expired key once, whoever else comes at the same time', async () => {
      await post('k');
      nowMs += DAY_MS;
      await Promise.all(Array.from({ length: 5 }, () => post('k')));
      expect(accepted).toHaveLength(2);
      expect([...stored.values()]).toEqual([accepted[1]]);
    });

    test('that could not be stored fails, and is new the next time', async () => {
      const away = new Error('the store is away');
      accepting = () => Promise.reject(away);
      await expect(post('k')).rejects.toBe(away);
      accepting = accept;
      expect((await post('k')).isReplayed).toBe(false);
    });
  });

  describe('several messages with keys', () => {
    const keyedRequest = (key: string, payload: string, bodyHash = payload): NewMessage => ({
      companyId: 'comp_a',
      address: { kind: 'webhook', webhookId: 'wh_1' },
      eventType: null,
      payload,
      requestId: 'request-1',
      idempotency: { key, bodyHash },
    });

    test('have an outcome each, and one look-up for all that are repeats', async () => {
      await keyedAccept.acceptMany(['a', 'b'].map((key) => keyedRequest(key, `"${key}"`)));
      expect(lookUps).toBe(0);
      const [a, other, fresh] = await keyedAccept.acceptMany([
        keyedRequest('a', '"a"'),
        keyedRequest('b', '"other"'),
        keyedRequest('c', '"c"'),
      ]);
      const [holder] = accepted;
      expect(a).toMatchObject({ kind: 'replayed', holder: { id: holder?.id, targetCount: 2 } });
      expect(other).toMatchObject({ kind: 'failed', error: { code: 'idempotency_key_reused' } });
      expect(fresh).toMatchObject({ kind: 'accepted', message: { payload: '"c"' } });
      expect([lookUps, accepted.length]).toEqual([1, 3]);
      expect(await lookups()).toEqual({ new: 3, repeated: 2 });
    });

    test('are repeated by a single request, which gets the headers that the webhook has now', async () => {
      await keyedAccept.acceptMany([keyedRequest('k', '{"n":1}', hashOf('{"n":1}'))]);
      const { message, shown, isReplayed } = await post('k');
      expect([isReplayed, accepted]).toEqual([true, [message]]);
      const { signature, headers } = headersOf(message, webhook);
      expect(signature).toEqual(expect.any(String));
      expect(shown).toMatchObject({ signature, headers });
    });

    test('of one call that are equal are one message, and another body has no place', async () => {
      const outcomes = await keyedAccept.acceptMany([
        keyedRequest('k', '1'),
        keyedRequest('k', '1'),
        keyedRequest('k', '2'),
      ]);
      expect(outcomes.map(({ kind }) => kind)).toEqual(['accepted', 'replayed', 'failed']);
      expect(outcomes[2]).toMatchObject({ error: { code: 'idempotency_key_reused' } });
      expect(accepted).toHaveLength(1);
    });

    test('take over every key that is free again, with one release', async () => {
      await keyedAccept.acceptMany([keyedRequest('a', '1'), keyedRequest('b', '2')]);
      nowMs += DAY_MS;
      const again = [keyedRequest('a', '3'), keyedRequest('b', '4'), keyedRequest('a', '3')];
      const outcomes = await keyedAccept.acceptMany(again);
      expect(outcomes.map(({ kind }) => kind)).toEqual(['accepted', 'accepted', 'replayed']);
      expect(accepted.map(({ payload }) => payload)).toEqual(['1', '2', '3', '4']);
    });

    test('of which some may be stored already are not looked up for these', async () => {
      accepting = ({ payload }) =>
        payload === '1' ? Promise.reject(new ApiError('unavailable')) : Promise.resolve(null);
      find = () => null;
      const outcomes = await keyedAccept.acceptMany([
        keyedRequest('a', '1'),
        keyedRequest('b', '2'),
      ]);
      expect(outcomes).toMatchObject([
        { kind: 'failed', error: { code: 'unavailable' } },
        { kind: 'failed', error: { code: 'idempotency_key_running' } },
      ]);
    });

    test('are 503 when their keys cannot be looked up before the deadline', async () => {
      accepting = () => Promise.resolve(null);
      looking = new Promise(() => undefined);
      const outcomes = await keyedAccept.acceptMany([keyedRequest('a', '1')], {
        deadline: AbortSignal.abort(),
      });
      expect(outcomes).toMatchObject([{ kind: 'failed', error: { code: 'unavailable' } }]);
    });

    test('that are stored are accepted when the keys of others cannot be released before the deadline', async () => {
      await keyedAccept.acceptMany([keyedRequest('a', '1')]);
      nowMs += DAY_MS;
      releasing = new Promise(() => undefined);
      const deadline = new AbortController();
      const requests = [keyedRequest('a', '2'), keyedRequest('b', '3')];
      const all = keyedAccept.acceptMany(requests, { deadline: deadline.signal });
      await eventually('the release', () => released.length > 0);
      deadline.abort();
      expect(await all).toMatchObject([
        { kind: 'failed', error: { code: 'unavailable' } },
        { kind: 'accepted', message: { payload: '3' } },
      ]);
    });

    test('fail with the error of the look-up', async () => {
      accepting = () => Promise.resolve(null);
      const away = new Error('the store is away');
      looking = Promise.reject(away);
      const outcomes = await keyedAccept.acceptMany([keyedRequest('a', '1')]);
      expect(outcomes).toEqual([{ kind: 'failed', error: away }]);
    });
  });

  describe('the repeat of a message in order', () => {
    const ordered = (n: number): NewMessage => ({
      companyId: 'comp_a',
      address: { kind: 'webhook', webhookId: 'wh_1' },
      eventType: null,
      payload: `${n}`,
      requestId: 'request-1',
      given: { orderingKey: 'order-17' },
      idempotency: { key: `k${n}`, bodyHash: `${n}` },
    });
    const idsOf = () => accepted.map(({ id }) => id);
    const kindsOf = (outcomes: readonly AcceptOutcome[]) => outcomes.map(({ kind }) => kind);

    test('is answered once Kafka has its records', async () => {
      await keyedAccept.acceptMany([ordered(1)]);
      const [id] = idsOf();
      events = [];
      const { promise, resolve } = Promise.withResolvers<null>();
      publishing = promise;
      let outcomes: AcceptOutcome[] = [];
      const all = keyedAccept.acceptMany([ordered(1)]).then((each) => (outcomes = each));
      await eventually('the wait', () => events.length > 0);
      expect(outcomes).toEqual([]);
      resolve(null);
      await all;
      expect([kindsOf(outcomes), events]).toEqual([
        ['replayed'],
        [`publish ${String(id)}`, `give ${String(id)} up`],
      ]);
    });

    test('is unavailable while they cannot be published, and so is all behind it in a call in order', async () => {
      const again = [ordered(1), { ...ordered(2), given: {} }];
      await keyedAccept.acceptMany(again);
      publishing = Promise.reject(new ApiError('unavailable'));
      expect(kindsOf(await keyedAccept.acceptMany(again))).toEqual(['failed', 'replayed']);
      const outcomes = await keyedAccept.acceptMany(again, { isInOrder: true });
      expect(kindsOf(outcomes)).toEqual(['failed', 'failed']);
    });

    test('is published before anything behind it is stored, and not once more', async () => {
      await keyedAccept.acceptMany([ordered(1)]);
      events = [];
      const outcomes = await keyedAccept.acceptMany([ordered(1), ordered(2)], { isInOrder: true });
      const [first, second] = idsOf();
      expect(kindsOf(outcomes)).toEqual(['replayed', 'accepted']);
      const published = [`publish ${String(first)}`, `give ${String(first)} up`];
      expect(events).toEqual([...published, `store ${String(second)}`]);
    });

    test('whose key is free again is stored in its place', async () => {
      claimed = { kind: 'claimed', claimedFor: 'msg_crashed', ageMs: 120_000 };
      const both = [ordered(1), ordered(2)];
      const outcomes = await keyedAccept.acceptMany(both, { isInOrder: true });
      expect(kindsOf(outcomes)).toEqual(['accepted', 'accepted']);
      expect(accepted.map(({ payload }) => payload)).toEqual(['1', '2']);
    });

    test('costs nothing where no message is in order', async () => {
      const plain = { ...ordered(1), given: {} };
      await keyedAccept.acceptMany([plain], { isInOrder: true });
      await keyedAccept.acceptMany([plain], { isInOrder: true });
      expect([events, lookUps]).toEqual([[`store ${String(idsOf()[0])}`], 1]);
    });
  });

  describe('a request without an idempotency key', () => {
    test('is accepted every time', async () => {
      const results = [await post(undefined), await post(undefined)];
      expect(new Set(results.map(({ message }) => message.id)).size).toBe(2);
      expect(results.every(({ isReplayed }) => !isReplayed)).toBe(true);
      expect(accepted.every(({ idempotency }) => idempotency === null)).toBe(true);
      expect(await lookups()).toEqual({ new: 0, repeated: 0 });
    });
  });
});

describe('idempotency key', () => {
  const DAY_MS = 86_400_000;
  const bodyHash = hashOf('{"n":1}');
  const holder: KeyHolder = {
    kind: 'holder',
    id: 'msg_1',
    ageMs: 0,
    bodyHash,
    publisherId: 'gw_1',
    isOrdered: false,
    targetCount: 2,
    storedBytes: 900,
    claimedFor: 'msg_1',
  };

  describe('a request with an idempotency key', () => {
    test('is the first one when no message holds the key', () => {
      expect(keyUseOf(null, bodyHash)).toEqual({ kind: 'first' });
    });

    test('is a repeat for 24 hours and not a millisecond longer', () => {
      // It is negative after an election, when the clock of the new primary is behind.
      const useAt = (ageMs: number) => keyUseOf({ ...holder, ageMs }, bodyHash).kind;
      expect([-1, 0, DAY_MS - 1, DAY_MS].map(useAt)).toEqual([
        ...['repeat', 'repeat', 'repeat', 'expired'],
      ]);
    });

    test('waits for a message that has claimed the key, and takes it away after two minutes', () => {
      const claim = { kind: 'claimed' as const, claimedFor: 'msg_1', ageMs: 120_000 };
      expect(keyUseOf({ ...claim, ageMs: 119_999 }, bodyHash)).toEqual({ kind: 'running' });
      expect(keyUseOf(claim, bodyHash)).toEqual({ kind: 'abandoned', claim });
    });

    test('reuses the key when its body differs by a single byte', () => {
      const other = hashOf('{"n":1} ');
      expect(keyUseOf(holder, other)).toEqual({ kind: 'reused' });
      const expired = { ...holder, ageMs: DAY_MS };
      expect(keyUseOf(expired, other)).toEqual({ kind: 'expired', holder: expired });
    });
  });
});
