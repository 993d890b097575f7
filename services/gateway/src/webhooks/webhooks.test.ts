import { beforeEach, describe, expect, test } from '@jest/globals';
import type { AuthMethod, Webhook } from '@posthorn/domain/webhook.ts';
import type { AppDocument, ProjectDocument } from '@posthorn/platform/mongo/documents.ts';
import type { WebhookChanges } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import { NO_QUOTAS } from '../../../../test/support/samples/no-quotas.ts';
import { countingIds } from '../../../../test/support/samples/sample-message.ts';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { notFound } from '../api-error.ts';
import { quotaExceeded, type Quotas } from '../projects/quotas.ts';
import type { Uids } from '../projects/uids.ts';
import {
  type ChangeWebhook,
  createChangeWebhook,
  createWebhook,
  newSecret,
  rotateSecret,
} from './webhooks.ts';

describe('create webhook', () => {
  const url = 'https://example.com:8443/hook';

  let owners: Set<string>;
  let stored: Map<string, Webhook>;
  let invalidated: string[];
  /** The project of each webhook, and its event types. */
  let checked: string[][];
  /** Runs between the two checks of the owner. */
  let afterInsert: () => void;
  let quotas: Quotas;
  let isRecorded: Promise<unknown>;
  const newId = countingIds();

  beforeEach(() => {
    owners = new Set(['app_1', 'proj_1']);
    stored = new Map();
    [invalidated, checked] = [[], []];
    afterInsert = () => undefined;
    quotas = NO_QUOTAS;
    isRecorded = Promise.resolve();
  });

  /** Resolves to the few fields of a stored owner that are used. */
  function getOwner<Owner>(id: string, owner: Partial<Owner>): Promise<Owner> {
    return owners.has(id) ? Promise.resolve(owner as Owner) : Promise.reject(notFound('owner'));
  }

  const exists = (_company: string, id: string) => Promise.resolve(owners.has(id));

  const create = (fields: Omit<Parameters<typeof createWebhook>[2], 'id'>) => {
    const deps: Parameters<typeof createWebhook>[0] = {
      projects: {
        get: (_company, _id) => getOwner<ProjectDocument>(_id, { _id }),
        exists,
      },
      apps: {
        get: (_company, id) => getOwner<AppDocument>(id, { projectId: 'proj_of_app' }),
        exists,
      },
      webhooks: {
        insert: (webhook) => {
          stored.set(webhook.id, webhook);
          afterInsert();
          return Promise.resolve();
        },
        deleteOne: (_company, id) => Promise.resolve(stored.delete(id)),
        countOf: () => Promise.resolve(stored.size),
      },
      eventTypes: {
        assertSelectable: ({ projectId }, given) => {
          checked.push([projectId, ...given]);
          return Promise.resolve();
        },
      },
      quotas,
      uids: { claim: (_own, write) => write() },
      invalidate: ({ id }: Invalidation) => Promise.resolve(void invalidated.push(id)),
      nowMs: () => 5_000,
    };
    return createWebhook(deps, 'comp_a', { ...fields, id: newId('wh') }, isRecorded);
  };

  describe('creating a webhook', () => {
    test('changes nothing before its event is recorded, nor when it cannot be', async () => {
      const recorded = Promise.withResolvers<undefined>();
      isRecorded = recorded.promise;
      const creating = create({ url, appId: 'app_1' });
      await new Promise(setImmediate);
      expect(stored.size).toBe(0);
      recorded.reject(new Error('MongoDB is away'));
      await expect(creating).rejects.toThrow('MongoDB is away');
      expect(stored.size).toBe(0);
    });

    test('of an app stores it with defaults, in the project of the app', async () => {
      const webhook = await create({ url, appId: 'app_1' });
      expect(webhook).toMatchObject({
        companyId: 'comp_a',
        projectId: 'proj_of_app',
        appId: 'app_1',
        environmentId: null,
        name: 'example.com:8443',
        customHeaders: [],
        eventTypes: [],
        disabled: false,
        rateLimitPerSecond: null,
        createdAtMs: 5_000,
        updatedAtMs: 5_000,
      });
      expect(webhook.authMethod).toMatchObject({ method: 'hmac', hmacSecret: webhook.secret });
      expect([...stored.values()]).toEqual([webhook]);
      expect(invalidated).toEqual(['app_1']);
    });

    test('that is global stores its project and environment, and invalidates the webhook', async () => {
      const fields = { url, projectId: 'proj_1', environmentId: 'live' };
      const webhook = await create(fields);
      expect(webhook).toMatchObject({ projectId: 'proj_1', appId: null, environmentId: 'live' });
      expect(invalidated).toEqual([webhook.id]);
    });

    test.each([{ appId: 'app_9' }, { projectId: 'proj_9', environmentId: 'live' }])(
      'for the unknown owner %j throws 404 and stores nothing',
      async (owner) => {
        const creation = create({ url, ...owner });
        await expect(creation).rejects.toMatchObject({ status: 404 });
        expect(stored.size).toBe(0);
      },
    );

    test('checks its event types against the catalogue of its project', async () => {
      await create({ url, appId: 'app_1', eventTypes: ['order.*'] });
      expect(checked).toEqual([['proj_of_app', 'order.*']]);
    });

    test('removes it again when its app is deleted at the same time', async () => {
      afterInsert = () => owners.delete('app_1');
      const creation = create({ url, appId: 'app_1' });
      await expect(creation).rejects.toMatchObject({ status: 404 });
      expect([stored.size, invalidated]).toEqual([0, []]);
    });

    test.each([
      [{ appId: 'app_1' }, 'QUOTA_WEBHOOKS_PER_APP', 'app_1'],
      [
        { projectId: 'proj_1', environmentId: 'live' },
        'QUOTA_GLOBAL_WEBHOOKS_PER_PROJECT',
        'proj_1',
      ],
    ])('with %j counts against its owner', async (owner, setting, ownerId) => {
      const asked: object[] = [];
      quotas = {
        ...NO_QUOTAS,
        createWithin(creation) {
          asked.push({ setting: creation.setting, ownerId: creation.ownerId });
          return Promise.reject(quotaExceeded(creation.setting, 1));
        },
      };
      const creating = create({ url, ...owner });
      await expect(creating).rejects.toMatchObject({ code: 'quota_exceeded' });
      expect([asked, stored.size, invalidated]).toEqual([[{ setting, ownerId }], 0, []]);
    });
  });
});

describe('change webhook', () => {
  const NOW_MS = 5_000;
  const which = { companyId: 'comp_a', webhookId: sampleWebhook(1).id };

  let stored: Webhook | null;
  let writes: WebhookChanges[];
  let announced: Invalidation[];
  /** Runs between the read and the write. */
  let beforeWrite: () => void;

  beforeEach(() => {
    stored = sampleWebhook(1);
    [writes, announced, beforeWrite] = [[], [], () => undefined];
  });

  type Decide = (seen: Webhook) => WebhookChanges | null;

  const change = (decide: Decide, nowMs = NOW_MS) => changer(nowMs)(which, decide);

  function changer(nowMs = NOW_MS) {
    const webhooks = {
      findOne: () => Promise.resolve(stored),
      update: (seen: Webhook, changes: WebhookChanges) => {
        beforeWrite();
        if (stored?.updatedAtMs !== seen.updatedAtMs) return Promise.resolve(null);
        writes.push(changes);
        stored = { ...seen, ...changes };
        return Promise.resolve(stored);
      },
    };
    const invalidate = (invalidation: Invalidation) => {
      announced.push(invalidation);
      return Promise.resolve();
    };
    const uids: Pick<Uids, 'claim'> = { claim: (_own, write) => write() };
    return createChangeWebhook({ uids, webhooks, nowMs: () => nowMs, invalidate });
  }

  /** Changes the stored webhook `times` times, as other processes would. */
  function changeElsewhere(times: number, changes: Partial<Webhook>): void {
    let left = times;
    beforeWrite = () => {
      if (left === 0 || !stored) return;
      left -= 1;
      stored = { ...stored, ...changes, updatedAtMs: stored.updatedAtMs + 1 };
    };
  }

  describe('a change of a webhook', () => {
    test('is written with its time, and announced for the webhook and its app', async () => {
      const changed = await change(() => ({ name: 'New' }));
      const before = sampleWebhook(1);
      expect(changed).toEqual({ before, after: { ...before, name: 'New', updatedAtMs: NOW_MS } });
      expect(announced.map(({ id }) => id)).toEqual([which.webhookId, 'app_1']);
    });

    test('of a global webhook is announced for the webhook only', async () => {
      stored = sampleWebhook(1, { appId: null, environmentId: 'live' });
      await change(() => ({ name: 'New' }));
      expect(announced).toEqual([{ companyId: 'comp_a', id: which.webhookId }]);
    });

    test('that decides on nothing writes and announces nothing', async () => {
      const webhook = sampleWebhook(1);
      expect(await change(() => null)).toEqual({ before: webhook, after: webhook });
      expect([writes, announced]).toEqual([[], []]);
    });

    test('gets a later time, even within one millisecond and when the clock was set back', async () => {
      for (const nowMs of [NOW_MS, NOW_MS, 1, 2_500]) await change(() => ({ name: 'New' }), nowMs);
      const times = writes.map(({ updatedAtMs }) => updatedAtMs);
      expect(times).toEqual([5_000, 5_001, 5_002, 5_003]);
    });

    test('is decided again after a faster one, and loses nothing of it', async () => {
      changeElsewhere(3, { url: 'https://example.com/rival' });
      const seenUrls: string[] = [];
      const { before, after } = await change((seen) => {
        seenUrls.push(seen.url);
        return { name: 'New' };
      });
      const { name, url } = sampleWebhook(1);
      expect(before).toMatchObject({ name, url: 'https://example.com/rival' });
      expect(after).toMatchObject({ name: 'New', url: 'https://example.com/rival' });
      expect(seenUrls).toEqual([url, ...Array<string>(3).fill(after.url)]);
      expect(writes).toHaveLength(1);
    });

    test('throws 404 for an unknown webhook, and for one that is deleted in between', async () => {
      beforeWrite = () => {
        stored = null;
      };
      const failure = { status: 404, code: 'not_found' };
      await expect(change(() => ({ name: 'New' }))).rejects.toMatchObject(failure);
      await expect(change(() => ({ name: 'New' }))).rejects.toMatchObject(failure);
      expect(announced).toEqual([]);
    });

    test('throws 503 when others are always faster', async () => {
      changeElsewhere(1_000, {});
      await expect(change(() => ({ name: 'New' }))).rejects.toMatchObject({ status: 503 });
      expect([writes, announced]).toEqual([[], []]);
    });

    test('writes nothing when `decide` throws', async () => {
      const refusal = new Error('400');
      await expect(
        change(() => {
          throw refusal;
        }),
      ).rejects.toBe(refusal);
      expect(writes).toEqual([]);
    });

    test('waits for others in its process, so that none of them fails', async () => {
      const changeOne = changer();
      let decisions = 0;
      const rename = (n: number) => () => {
        decisions += 1;
        return { name: `Name ${n}` };
      };
      await Promise.all(Array.from({ length: 30 }, (_, n) => changeOne(which, rename(n))));
      expect([decisions, writes.length, stored?.name]).toEqual([30, 30, 'Name 29']);
    });
  });
});

describe('rotate secret', () => {
  interface Given {
    secret?: string;
    previousSecret?: Webhook['previousSecret'];
  }

  const NOW_MS = 5_000;
  const hmac = (hmacSecret: string): AuthMethod => ({
    method: 'hmac',
    hmacHeader: 'X-Sig',
    hmacSecret,
  });

  async function rotate(authMethod: AuthMethod, graceSeconds: number, given: Given = {}) {
    const { secret = 'whsec_new', previousSecret = null } = given;
    const webhook = sampleWebhook(1, { secret: 'whsec_old', previousSecret, authMethod });
    let changes = null as WebhookChanges | null;
    const changeWebhook: ChangeWebhook = (_which, decide) => {
      changes = decide(webhook);
      return Promise.resolve({ before: webhook, after: { ...webhook, ...changes } });
    };
    const deps = { changeWebhook, nowMs: () => NOW_MS };
    const which = { companyId: 'comp_a', webhookId: webhook.id };
    const rotation = { ...which, id: 'rot_1', secret, graceSeconds };
    const { after: rotated } = await rotateSecret(deps, rotation);
    return { rotated, changes };
  }

  describe('rotating the secret of a webhook', () => {
    test('keeps the old secret until the grace period ends', async () => {
      const { rotated } = await rotate(hmac('whsec_old'), 60);
      expect(rotated.secret).toBe('whsec_new');
      expect(rotated.previousSecret).toEqual({ secret: 'whsec_old', expiresAtMs: NOW_MS + 60_000 });
    });

    test('drops the old secret at once without a grace period', async () => {
      const { rotated } = await rotate(hmac('whsec_old'), 0);
      expect(rotated.previousSecret).toBeNull();
    });

    test('changes an HMAC secret that follows the secret of the webhook', async () => {
      const { rotated } = await rotate(hmac('whsec_old'), 60);
      expect(rotated.authMethod).toEqual(hmac(rotated.secret));
    });

    test('stores the secret that the request gives, and the old one signs beside it', async () => {
      const { rotated } = await rotate(hmac('whsec_old'), 60, { secret: 'whsec_own' });
      expect(rotated.secret).toBe('whsec_own');
      expect(rotated.authMethod).toEqual(hmac('whsec_own'));
      expect(rotated.previousSecret).toEqual({ secret: 'whsec_old', expiresAtMs: NOW_MS + 60_000 });
    });

    test.each<[string, number, number | null]>([
      ['stays', 60, NOW_MS + 60_000],
      ['stays when a longer one is asked for', 600, NOW_MS + 60_000],
      ['becomes shorter', 5, NOW_MS + 5_000],
      ['ends', 0, null],
    ])(
      'to the same secret changes nothing but the grace, which %s',
      async (_what, graceSeconds, expected) => {
        const previousSecret = { secret: 'whsec_before', expiresAtMs: NOW_MS + 60_000 };
        const given = { secret: 'whsec_old', previousSecret };
        const { rotated, changes } = await rotate(hmac('whsec_old'), graceSeconds, given);
        expect(Object.keys(changes ?? {})).toEqual(
          expected === previousSecret.expiresAtMs ? ['rotations'] : ['previousSecret', 'rotations'],
        );
        expect(rotated.secret).toBe('whsec_old');
        expect(rotated.previousSecret).toEqual(
          expected === null ? null : { secret: 'whsec_before', expiresAtMs: expected },
        );
        const { changes: none } = await rotate(hmac('whsec_old'), graceSeconds, {
          secret: 'whsec_old',
        });
        expect(none).toEqual({ rotations: ['rot_1'] });
      },
    );

    describe('that repeats an earlier request', () => {
      /** Rotates one webhook with each of these ids, the secret of which follows from it; returns the webhook. */
      async function rotateAll(
        ids: readonly string[],
        graceSeconds: number,
        first = 'whsec_old',
      ): Promise<Webhook> {
        let webhook = sampleWebhook(1, { secret: first, authMethod: hmac(first) });
        const changeWebhook: ChangeWebhook = (_which, decide) => {
          const before = webhook;
          webhook = { ...before, ...decide(before) };
          return Promise.resolve({ before, after: webhook });
        };
        for (const id of ids) {
          const rotation = { id, companyId: 'comp_a', webhookId: webhook.id, graceSeconds };
          await rotateSecret(
            { changeWebhook, nowMs: () => NOW_MS },
            { ...rotation, secret: `whsec_of_${id}` },
          );
        }
        return webhook;
      }

      test.each([
        ['without a grace', ['a', 'b', 'a'], 0],
        ['with a grace', ['a', 'b', 'a'], 60],
        ['and two more', ['a', 'b', 'c', 'a', 'b'], 60],
      ])('changes nothing after another one %s', async (_what, ids, graceSeconds) => {
        const last = [...new Set(ids)];
        const expected = await rotateAll(last, graceSeconds);
        expect(expected.secret).toBe(`whsec_of_${last.at(-1) ?? ''}`);
        expect(await rotateAll(ids, graceSeconds)).toEqual(expected);
      });

      test.each([0, 60])(
        'changes nothing after another one, also where it gave the present secret (grace of %d s)',
        async (graceSeconds) => {
          const { secret } = await rotateAll(['a', 'b', 'a'], graceSeconds, 'whsec_of_a');
          expect(secret).toBe('whsec_of_b');
        },
      );

      test('is known for 16 rotations, and no more are stored', async () => {
        const ids = Array.from({ length: 16 }, (_, n) => `rot_${n}`);
        const { secret, rotations } = await rotateAll([...ids, 'rot_0'], 60);
        expect([secret, rotations]).toEqual(['whsec_of_rot_15', ids]);
        const { rotations: later } = await rotateAll([...ids, 'rot_16'], 60);
        expect(later).toEqual([...ids.slice(1), 'rot_16']);
      });
    });

    test.each([hmac('own'), { method: 'basic', username: 'u', password: 'p' } as const])(
      'keeps the credentials of %j',
      async (authMethod) => {
        const { changes } = await rotate(authMethod, 60);
        expect(changes).not.toHaveProperty('authMethod');
      },
    );
  });
});

test('a new secret is 32 random bytes in the format of Standard Webhooks', () => {
  const made = Array.from({ length: 100 }, newSecret);
  for (const secret of made) expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(new Set(made).size).toBe(100);
});
