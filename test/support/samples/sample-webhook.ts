import { createSecretKey, randomBytes } from 'node:crypto';
import { openValues } from '@posthorn/domain/webhook-fields.ts';
import type { OAuth2Client, Webhook } from '@posthorn/domain/webhook.ts';
import type { OpenedWebhook, UnopenedWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { EncryptionKey, SealedValueError } from '@posthorn/platform/security/vault.ts';

const URL = 'https://example.com/hook';

/** Returns a webhook whose id depends on `n`. Every secret value in it contains `hush`. */
export function sampleWebhook(n: number, overrides: Partial<Webhook> = {}): Webhook {
  return {
    ...openValues({ url: URL }),
    id: `wh_${String(n).padStart(26, '0')}`,
    companyId: 'comp_a',
    projectId: 'proj_1',
    appId: 'app_1',
    name: `Webhook ${n}`,
    secret: `whsec_hush-${n}`,
    previousSecret: { secret: 'whsec_hush-before', expiresAtMs: 9_000 },
    customHeaders: [{ key: 'X-Tenant', value: 'hush-tenant' }],
    authMethod: { method: 'hmac', hmacHeader: 'X-Signature', hmacSecret: 'hush-hmac' },
    tls: null,
    eventTypes: ['order.paid'],
    rateLimitPerSecond: 5,
    createdAtMs: 1_000,
    updatedAtMs: 2_000,
    ...overrides,
  };
}

/** Returns such a webhook as the store finds it. */
export function openedWebhook(n: number, overrides: Partial<Webhook> = {}): OpenedWebhook {
  return { kind: 'opened', ...sampleWebhook(n, overrides) };
}

/** Returns a webhook as the store finds it when a value of it does not open. */
export function unopenedWebhook(id: string, problem: SealedValueError): UnopenedWebhook {
  return {
    kind: 'unopened',
    id,
    companyId: 'comp_a',
    projectId: 'proj_1',
    appId: 'app_1',
    disabled: false,
    cancelBeforeMs: null,
    eventTypes: [],
    filter: null,
    held: null,
    maxAttempts: null,
    ordering: 'none',
    problem,
  };
}

export const OAUTH2: OAuth2Client = {
  method: 'oauth2',
  tokenUrl: 'https://login.example.com/token',
  clientId: 'c',
  clientSecret: 's',
  scope: null,
  audience: null,
  clientAuthentication: 'basic',
};

export function randomKey(id: string): EncryptionKey {
  return { id, key: createSecretKey(randomBytes(32)) };
}
