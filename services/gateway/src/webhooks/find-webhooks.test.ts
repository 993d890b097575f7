import { describe, expect, test } from '@jest/globals';
import type { FoundWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { SealedValueError } from '@posthorn/platform/security/vault.ts';
import { openedWebhook, unopenedWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { ApiError, notFound } from '../api-error.ts';
import { listWebhooks } from './find-webhooks.ts';

async function* partsOf(found: FoundWebhook[]): AsyncGenerator<FoundWebhook[]> {
  for (const each of found) yield await Promise.resolve([each]);
}

async function list(found: FoundWebhook[], appId?: string) {
  const logged: unknown[] = [];
  const deps = {
    apps: { get: () => Promise.reject(notFound('app')) },
    webhooks: { list: () => partsOf(found) },
    logger: { error: (...line: unknown[]) => void logged.push(line) },
  };
  const asked = { appId, skip: 0, limit: 9 };
  const parts = await listWebhooks(deps, 'comp_a', asked, () => Promise.resolve());
  const page = (await Array.fromAsync(parts)).flat();
  return { ids: page.map(({ id }) => id), logged };
}

describe('the list of webhooks', () => {
  test('leaves out a webhook whose secrets cannot be decrypted, and logs its id and that of the key', async () => {
    const problem = new SealedValueError('secret of wh_bad is sealed with key k1', 'k1');
    const bad = unopenedWebhook('wh_bad', problem);
    const { ids, logged } = await list([openedWebhook(1), bad, openedWebhook(2)]);
    expect(ids).toEqual([openedWebhook(1).id, openedWebhook(2).id]);
    const reason = problem.message;
    expect(logged).toEqual([
      [{ webhookId: 'wh_bad', keyId: 'k1', reason }, 'webhook cannot be opened'],
    ]);
  });

  test('logs nothing when all secrets can be decrypted', async () => {
    const { ids, logged } = await list([openedWebhook(1)]);
    expect([ids, logged]).toEqual([[openedWebhook(1).id], []]);
  });

  test('throws 404 for an unknown app', async () => {
    await expect(list([], 'app_9')).rejects.toThrow(ApiError);
  });
});
