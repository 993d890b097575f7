import { describe, expect, test } from '@jest/globals';
import { STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import { type AuthMethod, sentSecretOf } from '../../libs/domain/src/auth-methods.ts';
import { updateProblems } from '../../services/gateway/src/routes/webhook-body.ts';
import { sampleWebhook } from '../../test/support/samples/sample-webhook.ts';
import { methodOf, mustGiveAgain } from './src/pages/webhooks/auth-rules.ts';

const STORED: AuthMethod[] = [
  { method: 'hmac', hmacHeader: 'X-Sign', hmacSecret: 'hush' },
  { method: 'basic', username: 'shop', password: 'hush' },
  { method: 'api_key', apiKey: 'hush', apiKeyHeader: 'X-Key' },
  {
    method: 'oauth2',
    tokenUrl: 'https://login.example.com/token',
    clientId: 'shop',
    clientSecret: 'hush',
    scope: null,
    audience: null,
    clientAuthentication: 'basic',
  },
];

describe('the form of a webhook knows the authentication as the gateway does', () => {
  test.each(STORED)('what of $method must be given again', (stored) => {
    const method = methodOf(stored);
    const webhook = sampleWebhook(1, { authMethod: stored, customHeaders: [] });
    const fields = { url: 'https://mine.example.net/' };
    for (const seesSecrets of [true, false]) {
      const refused = updateProblems(fields, webhook, STRICT_EGRESS, { seesSecrets });
      const isAsked = mustGiveAgain({ method, stored, seesSecrets, isMoved: true });
      const paths = isAsked ? [sentSecretOf(method)] : [];
      expect(refused.map(({ path }) => path)).toEqual(paths);
    }
  });
});
