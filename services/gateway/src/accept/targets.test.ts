import { beforeEach, describe, expect, test } from '@jest/globals';
import type { EventTypePolicy, NotStored } from '@posthorn/domain/message.ts';
import { filtersOf } from '@posthorn/domain/parse-filter.ts';
import { wantsEvent, type Webhook } from '@posthorn/domain/webhook.ts';
import {
  type Filters,
  type FoundWebhook,
  type TargetList,
  targetListOf,
} from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { SealedValueError } from '@posthorn/platform/security/vault.ts';
import type { AppTargets } from '@posthorn/platform/mongo/webhooks/app-targets.ts';
import { openedWebhook, sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import type { KnownEventType } from '../catalogue/message-policy.ts';
import {
  createTargetResolver,
  estimatedBytesOf,
  type TargetDeps,
  type TargetResolver,
} from './targets.ts';

describe('resolve targets', () => {
  const MAX_TARGETS = 200;

  let webhooks: Webhook[];
  /** Ids of the webhooks whose stored secrets cannot be decrypted. */
  let damaged: Set<string>;
  /** `company/app` of every app there is. */
  let apps: Set<string>;
  /** What the apps do not store. */
  let notStored: NotStored;
  let reads: number;
  let isFollowed: boolean;
  let changesOfUnknownApps: number;
  let nowMs: number;
  /** Webhooks whose filters cost too much. */
  let undecided: string[];
  /** The policy of every project, and its event types by id. */
  let policy: EventTypePolicy | null;
  let types: Map<string, KnownEventType>;
  let policyReads: string[];
  let typeReads: string[];
  let targets: TargetResolver;

  const counted = <T>(answer: T): Promise<T> => {
    reads += 1;
    return Promise.resolve(answer);
  };

  beforeEach(() => {
    [reads, isFollowed, undecided] = [0, false, []];
    [changesOfUnknownApps, nowMs] = [0, 1];
    [policy, policyReads, typeReads] = ['open', [], []];
    types = new Map<string, KnownEventType>();
    notStored = {};
    damaged = new Set();
    apps = new Set(['comp_a/app_1', 'comp_a/app_empty']);
    webhooks = [
      sampleWebhook(1, { eventTypes: [] }),
      sampleWebhook(2, { eventTypes: ['order.paid'] }),
      sampleWebhook(3, { eventTypes: ['order.paid', 'order.sent'] }),
    ];
    const webhookStore: TargetDeps['webhooks'] = {
      appOf: (_companyId, id) =>
        Promise.resolve(webhooks.find((each) => each.id === id)?.appId ?? null),
      findTarget: (companyId, id) =>
        counted(stored(companyId, (each) => each.id === id)[0] ?? null),
      findTargets(companyId, { appId, eventType, limit }) {
        const found = stored(
          companyId,
          (each) => each.appId === appId && wantsEvent(each, eventType),
        );
        const list = targetListOf(found.slice(0, limit), found[0] ?? null);
        return counted({ ...list, filters: filtersOf(found) });
      },
    };
    const readApps: TargetDeps['readApps'] = (appIds, limit) =>
      counted(
        new Map(
          [...apps].flatMap((each): [string, AppTargets][] => {
            const [companyId = '', appId = ''] = each.split('/');
            if (!appIds.has(appId)) return [];
            const found = stored(companyId, (webhook) => webhook.appId === appId).slice(0, limit);
            return [[appId, { companyId, projectId: 'proj_1', notStored, webhooks: found }]];
          }),
        ),
      );
    const notStoredByApp = (companyId: string, appId: string) =>
      Promise.resolve(apps.has(`${companyId}/${appId}`) ? notStored : null);
    targets = createTargetResolver({
      cacheBytes: 1_000_000,
      maxTargets: MAX_TARGETS,
      webhooks: webhookStore,
      readApps,
      notStoredByApp,
      policyOf: (companyId, projectId) => {
        policyReads.push(`${companyId}/${projectId}`);
        return Promise.resolve(policy);
      },
      eventTypeOf: (companyId, id) => {
        typeReads.push(`${companyId}/${id}`);
        return Promise.resolve(types.get(id) ?? null);
      },
      areChangesFollowed: () => isFollowed,
      changesOfUnknownApps: () => changesOfUnknownApps,
      onUndecided: (ids) => void undecided.push(...ids),
      monotonicMs: () => nowMs,
    });
  });

  function stored(companyId: string, isMeant: (webhook: Webhook) => boolean): FoundWebhook[] {
    const found = webhooks.filter((each) => each.companyId === companyId && isMeant(each));
    return found.map((webhook) => {
      const { id, projectId, appId, disabled, cancelBeforeMs, eventTypes, filter } = webhook;
      const { maxAttempts, held, ordering } = webhook;
      const listed = { projectId, appId, disabled, eventTypes, filter, ordering };
      const state = { ...listed, cancelBeforeMs, maxAttempts, held };
      const problem = new SealedValueError(`secret of ${id}`, 'k1');
      return damaged.has(id)
        ? { kind: 'unopened' as const, id, companyId, ...state, problem }
        : { kind: 'opened' as const, ...webhook };
    });
  }

  const toApp = (appId: string, eventType: string | null = null, companyId = 'comp_a') =>
    targets.candidatesOf(companyId, { kind: 'app', appId, eventType });
  const toWebhook = (webhookId: string, companyId = 'comp_a') =>
    targets.candidatesOf(companyId, { kind: 'webhook', webhookId });
  const numbers = (found: TargetList | null) => found?.targets.map((id) => Number(id.slice(3)));
  const NO_TARGETS = {
    targets: [],
    disabledTargets: new Set(),
    orderedTargets: new Set(),
    oldest: null,
    notStored: {},
    noTargetReason: 'no_webhook',
  };

  describe('the policy of a project', () => {
    const known: KnownEventType = { isArchived: false, schema: null };

    test('that is open is read once for all its apps and webhooks, and adds nothing to a message', async () => {
      isFollowed = true;
      apps.add('comp_a/app_wide');
      for (let n = 10; n < 111; n += 1) webhooks.push(sampleWebhook(n, { appId: 'app_wide' }));
      const found = [
        await toApp('app_1'),
        await toApp('app_wide'),
        await toApp('app_1', 'order.paid'),
        await toWebhook(String(webhooks[0]?.id)),
      ];
      expect(found.map((each) => each?.policy)).toEqual(Array(4).fill(undefined));
      expect(policyReads).toEqual(['comp_a/proj_1']);
      expect(typeReads).toEqual([]);
    });

    test('that is not open comes with event types, each of which is read once', async () => {
      isFollowed = true;
      policy = 'known';
      types.set('proj_1/order.paid', known);
      const found = [await toApp('app_1'), await toWebhook(String(webhooks[0]?.id))];
      expect(found.map((each) => each?.policy?.level)).toEqual(['known', 'known']);
      const [first] = found;
      for (let n = 0; n < 2; n += 1) {
        expect(await first?.policy?.typeOf('order.paid')).toBe(known);
      }
      expect(await first?.policy?.typeOf('order.sent')).toBeNull();
      expect(typeReads).toEqual(['comp_a/proj_1/order.paid', 'comp_a/proj_1/order.sent']);
    });

    test('and its event types count as they are after a change', async () => {
      isFollowed = true;
      await toApp('app_1');
      policy = 'known';
      expect((await toApp('app_1'))?.policy).toBeUndefined();
      targets.cache.forget('proj_1');
      types.set('proj_1/order.paid', known);
      const typeNow = async () => (await toApp('app_1'))?.policy?.typeOf('order.paid');
      expect(await typeNow()).toBe(known);
      const archived = { ...known, isArchived: true };
      types.set('proj_1/order.paid', archived);
      expect(await typeNow()).toBe(known);
      targets.cache.forget('proj_1/order.paid');
      expect(await typeNow()).toBe(archived);
    });

    test('is open for a project that is being removed', async () => {
      policy = null;
      expect((await toApp('app_1'))?.policy).toBeUndefined();
    });
  });

  test('what is not stored of a message is what its app, or the app of its webhook, says', async () => {
    notStored = { omitsResponses: true };
    const wide = Array.from({ length: 101 }, (_, n) =>
      sampleWebhook(n + 10, { appId: 'app_wide' }),
    );
    const global = sampleWebhook(4, { appId: null, environmentId: 'live' });
    webhooks.push(global, ...wide);
    apps.add('comp_a/app_wide');
    const [first, second] = webhooks.map(({ id }) => id);
    damaged.add(String(second));
    const found = await Promise.all([
      toApp('app_1'),
      toApp('app_wide'),
      ...[first, second, global.id].map((id) => toWebhook(String(id))),
    ]);
    expect(found.map((each) => each?.notStored)).toEqual([
      ...[notStored, notStored, notStored, notStored],
      {},
    ]);
  });

  describe('the webhooks of an address', () => {
    test('are those of the app that want the event', async () => {
      expect(numbers(await toApp('app_1'))).toEqual([1]);
      expect(numbers(await toApp('app_1', 'order.paid'))).toEqual([1, 2, 3]);
      expect(numbers(await toApp('app_1', 'order.sent'))).toEqual([1, 3]);
      expect(numbers(await toApp('app_1', 'order.lost'))).toEqual([1]);
    });

    test('are the same in any order of requests, because one look-up serves every event type', async () => {
      const types = ['order.sent', null, 'order.paid', 'order.sent', null];
      const found = await Promise.all(types.map((type) => toApp('app_1', type)));
      expect(found.map(numbers)).toEqual([[1, 3], [1], [1, 2, 3], [1, 3], [1]]);
      expect(numbers(await toApp('app_1', 'order.paid'))).toEqual([1, 2, 3]);
      expect(reads).toBe(1);
    });

    test('are the one webhook that was named, whatever events it wants', async () => {
      expect(numbers(await toWebhook(sampleWebhook(2).id))).toEqual([2]);
    });

    test('are none, for another reason, where no webhook receives the event type', async () => {
      webhooks = [sampleWebhook(1, { eventTypes: ['order.paid'] })];
      const found = await toApp('app_1', 'order.sent');
      expect(found).toMatchObject({ targets: [], noTargetReason: 'event_type' });
    });

    test('include disabled ones, whose deliveries are cancelled', async () => {
      webhooks = [sampleWebhook(1, { eventTypes: [], disabled: true })];
      expect(numbers(await toApp('app_1'))).toEqual([1]);
    });

    test('include those whose secrets cannot be decrypted, with their event types', async () => {
      damaged = new Set([sampleWebhook(1).id, sampleWebhook(2).id]);
      expect(numbers(await toApp('app_1', 'order.paid'))).toEqual([1, 2, 3]);
      expect(numbers(await toApp('app_1', 'order.sent'))).toEqual([1, 3]);
      expect(numbers(await toWebhook(sampleWebhook(2).id))).toEqual([2]);
    });

    test('are none for an app without webhooks, and null for an app that does not exist', async () => {
      expect(await toApp('app_empty')).toEqual(NO_TARGETS);
      expect(await toApp('app_gone')).toBeNull();
      expect(await toWebhook('wh_gone')).toBeNull();
    });

    test('are null from the moment an app is deleted, though its webhooks are still being removed', async () => {
      apps.clear();
      expect(await toApp('app_1')).toBeNull();
    });

    test('of one company are never returned to another, whoever asks first', async () => {
      const { id } = sampleWebhook(1);
      expect(await toApp('app_1', null, 'comp_b')).toBeNull();
      expect(await toWebhook(id, 'comp_b')).toBeNull();
      expect(numbers(await toApp('app_1'))).toEqual([1]);
      expect(numbers(await toWebhook(id))).toEqual([1]);
      expect(await toApp('app_1', null, 'comp_b')).toBeNull();
      expect(await toWebhook(id, 'comp_b')).toBeNull();
    });
  });

  describe('the cache of targets', () => {
    test('drops an entry when its own change is announced, and no other', async () => {
      await toApp('app_1');
      webhooks = [];
      targets.cache.forget('app_2');
      expect(numbers(await toApp('app_1'))).toEqual([1]);
      targets.cache.forget('app_1');
      expect(await toApp('app_1')).toEqual(NO_TARGETS);
    });

    test('drops everything when an announcement may have been missed', async () => {
      await toWebhook(sampleWebhook(1).id);
      webhooks = [];
      targets.cache.forgetAll();
      expect(await toWebhook(sampleWebhook(1).id)).toBeNull();
    });

    test('drops an app when one of its webhooks has changed, and webhooks when their app has', async () => {
      const { id } = sampleWebhook(1);
      await Promise.all([toApp('app_1'), toWebhook(id)]);
      webhooks = [];
      targets.cache.forget('wh_other');
      expect([numbers(await toApp('app_1')), numbers(await toWebhook(id))]).toEqual([[1], [1]]);
      targets.cache.forget(id);
      expect([await toApp('app_1'), await toWebhook(id)]).toEqual([NO_TARGETS, null]);

      webhooks = [sampleWebhook(1)];
      targets.cache.forget('app_1');
      await toWebhook(id);
      notStored = { omitsResponses: true };
      targets.cache.forget('app_1');
      expect((await toWebhook(id))?.notStored).toEqual({ omitsResponses: true });
    });

    test('does not keep that something was missing: what is created now is found now', async () => {
      expect(await toApp('app_new')).toBeNull();
      apps.add('comp_a/app_new');
      expect(await toApp('app_new')).toEqual(NO_TARGETS);
    });
  });

  describe('an app with more than a hundred webhooks', () => {
    const many = (count: number, eventTypes: (n: number) => string[] = () => []) =>
      Array.from({ length: count }, (_, n) => sampleWebhook(n + 1, { eventTypes: eventTypes(n) }));

    test('is looked up once more for each event type', async () => {
      webhooks = many(150, (n) => (n % 2 === 0 ? ['order.paid'] : []));
      expect(numbers(await toApp('app_1'))).toHaveLength(75);
      expect(numbers(await toApp('app_1', 'order.paid'))).toHaveLength(150);
      expect(numbers(await toApp('app_1', 'order.sent'))).toHaveLength(75);
      expect(numbers(await toApp('app_1', 'order.paid'))).toHaveLength(150);
      expect(reads).toBe(4);
    });

    test('gives the oldest webhook whole, and only the ids of the others', async () => {
      webhooks = many(101);
      const found = await toApp('app_1');
      expect(found?.oldest).toEqual({ kind: 'opened', ...webhooks[0] });
      expect(found?.targets[100]).toBe(webhooks[100]?.id);
    });

    test('is read again after any change of it', async () => {
      webhooks = many(150);
      expect(numbers(await toApp('app_1', 'order.paid'))).toHaveLength(150);
      webhooks = many(140);
      targets.cache.forget('app_1');
      expect(numbers(await toApp('app_1', 'order.paid'))).toHaveLength(140);
    });

    test('is kept while changes are followed, and for two seconds at most once any webhook has changed', async () => {
      isFollowed = true;
      webhooks = many(150);
      expect(numbers(await toApp('app_1', 'order.paid'))).toHaveLength(150);
      webhooks = many(140);
      nowMs += 60_000;
      expect(numbers(await toApp('app_1', 'order.paid'))).toHaveLength(150);
      changesOfUnknownApps += 1;
      expect(numbers(await toApp('app_1', 'order.paid'))).toHaveLength(140);
      webhooks = many(130);
      changesOfUnknownApps += 1;
      nowMs += 1_999;
      expect(numbers(await toApp('app_1', 'order.paid'))).toHaveLength(140);
      nowMs += 1;
      expect(numbers(await toApp('app_1', 'order.paid'))).toHaveLength(130);
    });

    test('is read again after two seconds while changes are not followed', async () => {
      webhooks = many(150);
      expect(numbers(await toApp('app_1', 'order.paid'))).toHaveLength(150);
      webhooks = many(140);
      nowMs += 2_000;
      expect(numbers(await toApp('app_1', 'order.paid'))).toHaveLength(140);
    });

    test('is refused when a message would go to more webhooks than it may', async () => {
      webhooks = many(MAX_TARGETS + 50, (n) => (n < MAX_TARGETS ? [] : ['order.paid']));
      expect(numbers(await toApp('app_1'))).toHaveLength(MAX_TARGETS);
      await expect(toApp('app_1', 'order.paid')).rejects.toMatchObject({
        status: 409,
        code: 'quota_exceeded',
        message: 'The limit is 200 webhooks that one message goes to (QUOTA_TARGETS_PER_MESSAGE).',
      });
    });
  });

  describe('the filters of webhooks', () => {
    const filterOn = (amount: number) => JSON.stringify({ payload: { amount: { $gte: amount } } });
    const messageWith = (payload: string, eventType: string | null = 'order.paid') => ({
      payload,
      eventType,
      given: { tags: ['eu'] },
    });

    async function selected(payload: string, eventType: string | null = 'order.paid') {
      const candidates = await toApp('app_1', eventType);
      return candidates?.select ? candidates.select(messageWith(payload, eventType)) : candidates;
    }

    test('leave out those whose conditions the message does not meet', async () => {
      webhooks = [
        sampleWebhook(1, { filter: filterOn(100) }),
        sampleWebhook(2, { filter: filterOn(10), disabled: true }),
        sampleWebhook(3),
        sampleWebhook(4, { filter: '{"tags":"us"}' }),
      ];
      const found = await selected('{"amount":50}');
      expect(numbers(found)).toEqual([2, 3]);
      expect(found?.disabledTargets).toEqual(new Set([webhooks[1]?.id]));
      expect(found?.oldest).toEqual({ kind: 'opened', ...webhooks[1] });
      expect(numbers(await selected('{"amount":100}'))).toEqual([1, 2, 3]);
    });

    test('are no part of it where no webhook has one, or the webhook itself is named', async () => {
      expect(await toApp('app_1', 'order.paid')).not.toHaveProperty('select');
      webhooks = [sampleWebhook(1, { filter: filterOn(100) })];
      expect(await toWebhook(sampleWebhook(1).id)).not.toHaveProperty('select');
      expect(await toApp('app_1', 'order.sent')).not.toHaveProperty('select');
    });

    test('say why there is no target, unless no webhook selects the event type', async () => {
      webhooks = [sampleWebhook(1, { filter: filterOn(100) })];
      expect(await selected('{"amount":1}')).toMatchObject({
        targets: [],
        oldest: null,
        noTargetReason: 'filter',
      });
      expect(await selected('{"amount":1}', 'order.sent')).toMatchObject({
        noTargetReason: 'event_type',
      });
      expect(await selected('{"amount":100}')).not.toHaveProperty('noTargetReason');
    });

    test('have an order only when a webhook with one is among those that are left', async () => {
      const ordered = sampleWebhook(2, { filter: filterOn(100), ordering: 'block' });
      webhooks = [sampleWebhook(1), ordered];
      expect((await selected('{"amount":100}'))?.orderedTargets).toEqual(new Set([ordered.id]));
      expect((await selected('{"amount":1}'))?.orderedTargets).toEqual(new Set());
    });

    test('leave the payload unparsed unless a condition of a candidate is about it', async () => {
      webhooks = [
        sampleWebhook(1, { filter: '{"tags":"eu"}' }),
        sampleWebhook(2, { filter: filterOn(1), eventTypes: ['order.sent'] }),
      ];
      expect(numbers(await selected('no JSON'))).toEqual([1]);
      await expect(selected('no JSON', 'order.sent')).rejects.toThrow(SyntaxError);
    });

    test('of a wide app are read with it, and the oldest target is looked up', async () => {
      webhooks = Array.from({ length: 150 }, (_, n) =>
        sampleWebhook(n + 1, { filter: filterOn(n === 120 ? 10 : 100) }),
      );
      const found = await selected('{"amount":50}');
      expect(numbers(found)).toEqual([121]);
      expect(found?.oldest).toEqual({ kind: 'opened', ...webhooks[120] });
      expect(numbers(await selected('{"amount":150}'))).toHaveLength(150);
    });

    test('that cost too much are reported, and the message goes to them', async () => {
      webhooks = [sampleWebhook(1, { filter: '{"payload":{"list":-1}}' }), sampleWebhook(2)];
      const list = Array.from({ length: 20_000 }, (_, n) => n);
      expect(numbers(await selected(JSON.stringify({ list })))).toEqual([1, 2]);
      expect(undecided).toEqual([webhooks[0]?.id]);
    });

    test('take a turn for each 2 ms of work', async () => {
      webhooks = Array.from({ length: 100 }, (_, n) =>
        sampleWebhook(n + 1, { filter: `{"payload":{"list":-${n + 1}}}` }),
      );
      const list = Array.from({ length: 5_000 }, (_, n) => n);
      const turns: number[] = [];
      const candidates = await toApp('app_1', 'order.paid');
      await candidates?.select?.(messageWith(JSON.stringify({ list })), (ms = 0) => {
        turns.push(ms);
        return Promise.resolve();
      });
      // 5,000 steps for each of 100 filters, at 30 ns.
      expect(turns.reduce((sum, ms) => sum + ms, 0)).toBeCloseTo(15, 0);
      expect(Math.max(...turns)).toBeLessThan(2.3);
    });
  });
});

const sizeOf = (webhooks: FoundWebhook[]) => {
  const of = { appId: null, projectId: 'proj_1', notStored: {} };
  return estimatedBytesOf({ kind: 'webhooks', ...of, webhooks, filters: null });
};

const plain = openedWebhook(1, { customHeaders: [], eventTypes: [] });
const bytes = sizeOf([plain]);

describe('the targets in a wide app', () => {
  interface Sized {
    disabled?: number;
    ordered?: number;
    filters?: Filters | null;
  }

  const sizeWith = (count: number, { disabled = 0, ordered = 0, filters = null }: Sized = {}) => {
    const targets = Array.from({ length: count }, (_, n) => `wh_${n}`);
    const disabledTargets = new Set(targets.slice(0, disabled));
    const orderedTargets = new Set(targets.slice(0, ordered));
    const list = { targets, disabledTargets, orderedTargets, oldest: plain, filters };
    return estimatedBytesOf({ kind: 'targets', list });
  };

  test('take little each, beside the oldest webhook, and more where they are disabled or have an order', () => {
    expect(sizeWith(1_000) - sizeWith(0)).toBe(70_000);
    expect(sizeWith(1_000, { disabled: 1_000 }) - sizeWith(1_000)).toBe(50_000);
    expect(sizeWith(1_000, { ordered: 1_000 }) - sizeWith(1_000)).toBe(50_000);
    expect(sizeWith(0)).toBe(bytes);
  });

  test('take the texts of their filters, each once, and an entry for each', () => {
    const filter = '{"tags":"eu"}';
    const filters = filtersOf([1, 2, 3].map((n) => ({ id: `wh_${n}`, filter })));
    expect(sizeWith(3, { filters }) - sizeWith(3)).toBe(3 * 70 + 8 * filter.length);
  });

  test('take no more than their number tells while they are not looked up', () => {
    const app = { appId: 'app_1', projectId: 'proj_1' };
    expect(estimatedBytesOf({ kind: 'wide', ...app, notStored: {}, number: 1, changes: 0 })).toBe(
      500,
    );
  });
});

describe('an event type of a look-up', () => {
  test('takes its schema, and a policy little', () => {
    const schema = { id: 's', text: 'x'.repeat(100), eventTypeId: 'e' };
    const sizeOfType = (type: KnownEventType) =>
      estimatedBytesOf({ kind: 'event type', id: 'proj_1/a', type });
    const [plainType, checked] = [null, schema].map((each) => ({
      isArchived: false,
      schema: each,
    }));
    if (!plainType || !checked) throw new Error('there are two');
    expect(sizeOfType(checked) - sizeOfType(plainType)).toBe(100);
    expect(estimatedBytesOf({ kind: 'policy', projectId: 'proj_1', policy: 'open' })).toBe(500);
  });
});

describe('the webhooks of a look-up', () => {
  test('take memory even when there are none', () => {
    expect(sizeOf([])).toBe(500);
  });

  test('take the sum of what each of them takes', () => {
    expect(sizeOf([plain, plain]) - bytes).toBe(bytes - 500);
  });

  test('take more with custom headers, event types and a longer address', () => {
    const headers = [{ key: 'x-tenant', value: 'v'.repeat(1_000) }];
    const auth = { ...plain.authMethod, hmacSecret: 's'.repeat(1_009) };
    expect(sizeOf([{ ...plain, authMethod: auth }]) - bytes).toBe(1_000);
    expect(sizeOf([{ ...plain, customHeaders: headers }]) - bytes).toBe(1_168);
    expect(sizeOf([{ ...plain, eventTypes: ['order.paid'] }]) - bytes).toBe(90);
    expect(sizeOf([{ ...plain, url: `${plain.url}/hook` }]) - bytes).toBe(5);
  });
});
