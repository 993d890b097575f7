import { expect, test } from '@jest/globals';
import { ALL_SCOPES } from '@posthorn/domain/access.ts';
import { STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import type { Gateway } from '../gateway.ts';
import type { CheckedRequest } from '../http/route.ts';
import { webhookRoutes } from './webhooks.ts';

test('a key of one app updates no global webhook that has got the uid of its upsert meanwhile [security]', async () => {
  const global = sampleWebhook(1, { appId: null, environmentId: 'live' });
  const updated: unknown[] = [];
  const gateway = {
    policy: STRICT_EGRESS,
    uids: { holderOf: () => Promise.resolve(global.id) },
    changeWebhook(place: unknown) {
      updated.push(place);
      return Promise.resolve({ before: global, after: global });
    },
  } as unknown as Gateway;
  const { projectId, environmentId } = global;
  const value = { url: 'https://example.com/', projectId, environmentId };
  const body = { value, bytes: Buffer.alloc(0), textOf: () => undefined, as: () => value };
  const caller = { companyId: 'comp_a', keyId: 'key_1', scopes: ALL_SCOPES, appId: 'app_1' };
  const upsert = webhookRoutes(gateway).find(({ upsert: found }) => found)?.upsert;
  const request = { caller, body, newId: () => 'wh_new' } as unknown as CheckedRequest;
  await expect(upsert?.handle(request, 'orders')).rejects.toThrow('for one app only');
  expect(updated).toEqual([]);
});
