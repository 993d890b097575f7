import { describe, expect, test } from '@jest/globals';
import type { FoundWebhook, WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { SealedValueError } from '@posthorn/platform/vault/vault.ts';
import { sampleWebhook } from '../../../../../test/support/samples/sample-webhook.ts';
import type { ApiRequest } from '../../http/route.ts';
import { webhookRoutes, type WebhookRouteDeps } from './webhooks.ts';

async function list(found: FoundWebhook[]) {
  const logged: unknown[] = [];
  const webhooks: Partial<WebhookStore> = { list: () => Promise.resolve(found) };
  const logger = { error: (...line: unknown[]) => void logged.push(line) };
  const policy = { allowHttp: false, allowCidrs: [] };
  // The one route that is called uses these and nothing else.
  const deps = { webhooks, logger, policy } as unknown as WebhookRouteDeps;
  const [route] = webhookRoutes(deps).filter(
    ({ method, path }) => method === 'get' && path === '/webhooks',
  );
  const request = { caller: { companyId: 'comp_a' }, query: { limit: 9, skip: 0 } };
  // A route hides the types that its own schemas give to query and body.
  const answer = await route?.handle(request as unknown as ApiRequest<never, never>);
  return { ids: (answer?.data as { id: string }[]).map(({ id }) => id), logged };
}

describe('the list of webhooks', () => {
  test('leaves out one that does not open, and logs its id and that of its key', async () => {
    const problem = new SealedValueError('secret of wh_bad is sealed with key k1', 'k1');
    const bad = { id: 'wh_bad', disabled: false, eventTypes: [], problem };
    const { ids, logged } = await list([sampleWebhook(1), bad, sampleWebhook(2)]);
    expect(ids).toEqual([sampleWebhook(1).id, sampleWebhook(2).id]);
    const reason = problem.message;
    expect(logged).toEqual([
      [{ webhookId: 'wh_bad', keyId: 'k1', reason }, 'webhook cannot be opened'],
    ]);
  });

  test('logs nothing when all of them open', async () => {
    const { ids, logged } = await list([sampleWebhook(1)]);
    expect([ids, logged]).toEqual([[sampleWebhook(1).id], []]);
  });
});
