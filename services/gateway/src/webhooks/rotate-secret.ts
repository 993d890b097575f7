import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { Changed } from '@posthorn/platform/mongo/company-documents.ts';
import type { WebhookChanges } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { ChangeWebhook } from './change-webhook.ts';
import { newSecret } from './new-secret.ts';

export interface RotateSecretDeps {
  changeWebhook: ChangeWebhook;
  nowMs: () => number;
}

export interface Rotation {
  companyId: string;
  webhookId: string;
  /** How long the old secret signs beside the new one; 0 ends it at once. */
  graceSeconds: number;
}

/** Gives a webhook a new secret, and returns it before and after. Throws ApiError 404 for an unknown webhook. */
export type RotateSecret = (rotation: Rotation) => Promise<Changed<Webhook>>;

export function createRotateSecret({ changeWebhook, nowMs }: RotateSecretDeps): RotateSecret {
  return ({ companyId, webhookId, graceSeconds }) => {
    const expiresAtMs = graceSeconds > 0 ? nowMs() + graceSeconds * 1_000 : null;
    const secret = newSecret();
    return changeWebhook({ companyId, webhookId }, (webhook) =>
      rotated(webhook, secret, expiresAtMs),
    );
  };
}

/** An `hmacSecret` that the client chose stays; one that follows the secret of the webhook changes with it. */
function rotated(
  { authMethod, secret: old }: Webhook,
  secret: string,
  expiresAtMs: number | null,
): WebhookChanges {
  const followsSecret = authMethod.method === 'hmac' && authMethod.hmacSecret === old;
  return {
    secret,
    previousSecret: expiresAtMs === null ? null : { secret: old, expiresAtMs },
    ...(followsSecret && { authMethod: { ...authMethod, hmacSecret: secret } }),
  };
}
