import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { AppDocument, ProjectDocument } from '@posthorn/platform/mongo/documents/documents.ts';
import type { Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import { NO_QUOTAS } from '../../../../test/support/samples/no-quotas.ts';
import { countingIds } from '../../../../test/support/samples/sample-message.ts';
import { notFound } from '../http/api-error.ts';
import { quotaExceeded, type Quotas } from '../limits/quotas.ts';
import { createCreateWebhook } from './create-webhook.ts';

const url = 'https://example.com:8443/hook';

let owners: Set<string>;
let stored: Map<string, Webhook>;
let invalidated: string[];
/** Runs between the two checks of the owner. */
let afterInsert: () => void;
let quotas: Quotas;

beforeEach(() => {
  owners = new Set(['app_1', 'proj_1']);
  stored = new Map();
  invalidated = [];
  afterInsert = () => undefined;
  quotas = NO_QUOTAS;
});

/** Resolves to the few fields of a stored owner that are used. */
function getOwner<Owner>(id: string, owner: Partial<Owner>): Promise<Owner> {
  return owners.has(id) ? Promise.resolve(owner as Owner) : Promise.reject(notFound('owner'));
}

const createWebhook = () =>
  createCreateWebhook({
    projects: { get: (_company, _id) => getOwner<ProjectDocument>(_id, { _id }) },
    apps: { get: (_company, id) => getOwner<AppDocument>(id, { projectId: 'proj_of_app' }) },
    webhooks: {
      insert: (webhook) => {
        stored.set(webhook.id, webhook);
        afterInsert();
        return Promise.resolve();
      },
      deleteOne: (_company, id) => Promise.resolve(stored.delete(id)),
      countOf: () => Promise.resolve(stored.size),
    },
    quotas,
    invalidate: ({ id }: Invalidation) => Promise.resolve(void invalidated.push(id)),
    newId: countingIds(),
    nowMs: () => 5_000,
  });

describe('creating a webhook', () => {
  test('of an app stores it with defaults, in the project of the app', async () => {
    const webhook = await createWebhook()('comp_a', { url, appId: 'app_1' });
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
    const webhook = await createWebhook()('comp_a', fields);
    expect(webhook).toMatchObject({ projectId: 'proj_1', appId: null, environmentId: 'live' });
    expect(invalidated).toEqual([webhook.id]);
  });

  test.each([{ appId: 'app_9' }, { projectId: 'proj_9', environmentId: 'live' }])(
    'for the unknown owner %j throws 404 and stores nothing',
    async (owner) => {
      const creation = createWebhook()('comp_a', { url, ...owner });
      await expect(creation).rejects.toMatchObject({ status: 404 });
      expect(stored.size).toBe(0);
    },
  );

  test('removes it again when its app is deleted at the same time', async () => {
    afterInsert = () => owners.delete('app_1');
    const creation = createWebhook()('comp_a', { url, appId: 'app_1' });
    await expect(creation).rejects.toMatchObject({ status: 404 });
    expect([stored.size, invalidated]).toEqual([0, []]);
  });

  test.each([
    [{ appId: 'app_1' }, 'QUOTA_WEBHOOKS_PER_APP', 'app_1'],
    [{ projectId: 'proj_1', environmentId: 'live' }, 'QUOTA_GLOBAL_WEBHOOKS_PER_PROJECT', 'proj_1'],
  ])('with %j counts against its owner', async (owner, setting, ownerId) => {
    const asked: object[] = [];
    quotas = {
      createWithin(creation) {
        asked.push({ setting: creation.setting, ownerId: creation.ownerId });
        return Promise.reject(quotaExceeded(creation.setting, 1));
      },
    };
    const creating = createWebhook()('comp_a', { url, ...owner });
    await expect(creating).rejects.toMatchObject({ code: 'quota_exceeded' });
    expect([asked, stored.size, invalidated]).toEqual([[{ setting, ownerId }], 0, []]);
  });
});
