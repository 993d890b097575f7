import { describe, expect, test } from '@jest/globals';
import type { AuthMethod } from '@posthorn/domain/webhook.ts';
import type { WebhookChanges } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { createRotateSecret } from './rotate-secret.ts';

const NOW_MS = 5_000;
const hmac = (hmacSecret: string): AuthMethod => ({
  method: 'hmac',
  hmacHeader: 'X-Sig',
  hmacSecret,
});

async function rotate(authMethod: AuthMethod, graceSeconds: number) {
  const webhook = sampleWebhook(1, { secret: 'whsec_old', authMethod });
  let changes: WebhookChanges | null = null;
  const rotateSecret = createRotateSecret({
    changeWebhook: (_which, decide) => {
      changes = decide(webhook);
      return Promise.resolve({ before: webhook, after: { ...webhook, ...changes } });
    },
    nowMs: () => NOW_MS,
  });
  const which = { companyId: 'comp_a', webhookId: webhook.id };
  const { after: rotated } = await rotateSecret({ ...which, graceSeconds });
  return { rotated, changes };
}

describe('rotating the secret of a webhook', () => {
  test('keeps the old secret until the grace period ends', async () => {
    const { rotated } = await rotate(hmac('whsec_old'), 60);
    expect(rotated.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
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

  test.each([hmac('own'), { method: 'basic', username: 'u', password: 'p' } as const])(
    'keeps the credentials of %j',
    async (authMethod) => {
      const { changes } = await rotate(authMethod, 60);
      expect(changes).not.toHaveProperty('authMethod');
    },
  );
});
