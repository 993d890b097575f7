import { describe, expect, it } from '@jest/globals';
import { randomKey, sampleWebhook } from '../../../../../test/support/samples/sample-webhook.ts';
import { createVault, SealedValueError } from '../../security/vault.ts';
import type { WebhookDocument } from '../documents.ts';
import { openWebhook, sealWebhook } from './webhooks.ts';

const VAULT = createVault([randomKey('k1')]);
const WEBHOOK = sampleWebhook(1, { url: 'https://example.com/hook' });

const sealed = (changed: Partial<WebhookDocument> = {}): WebhookDocument => ({
  ...sealWebhook(VAULT, WEBHOOK),
  ...changed,
});
const opening = (document: WebhookDocument) => () => openWebhook(VAULT, document);

describe('a sealed webhook', () => {
  it('is opened', () => {
    const document = sealed();
    expect(Object.values(document.sealed)).toEqual(
      Array(4).fill(expect.stringMatching(/^v2\.k1\./)),
    );
    expect(openWebhook(VAULT, document)).toEqual(WEBHOOK);
  });

  it('has its TLS settings sealed too, and no such value without them', () => {
    const tls = { client: { certificate: 'chain', key: 'hush-key' }, ca: null };
    const document = sealWebhook(VAULT, { ...WEBHOOK, tls });
    expect(JSON.stringify(document)).not.toContain('hush');
    expect(openWebhook(VAULT, document)).toEqual({ ...WEBHOOK, tls });
    expect(sealed().sealed).not.toHaveProperty('tls');
  });

  it('is opened with the defaults for the fields that it does not have', () => {
    const { timeoutSeconds, signatureHeaders, ...document } = sealed();
    expect({ timeoutSeconds, signatureHeaders }).toEqual({
      timeoutSeconds: null,
      signatureHeaders: ['webhook'],
    });
    expect(openWebhook(VAULT, document as WebhookDocument)).toEqual(WEBHOOK);
  });

  it('is not opened with a value of another webhook or field, or of another format', () => {
    const document = sealed();
    const other = sealWebhook(VAULT, sampleWebhook(2));
    const { secret, authMethod } = document.sealed;
    const moved = [
      { ...document.sealed, secret: other.sealed.secret },
      { ...document.sealed, secret: authMethod },
      { ...document.sealed, secret: `v1${secret.slice(2)}` },
    ];
    for (const texts of moved) {
      expect(opening({ ...document, sealed: texts })).toThrow(SealedValueError);
    }
  });
});

describe('the URL of a sealed webhook [security]', () => {
  const ELSEWHERE = [
    'http://example.com/hook',
    'https://example.org/hook',
    'https://example.com:8443/hook',
    'https://example.com.attacker.test/hook',
    'no URL',
  ];

  it.each(ELSEWHERE)('opens no secret when it became %s', (url) => {
    expect(opening(sealed({ url }))).toThrow(/was changed or moved$/);
  });

  it('may get another path, or be written in another way', () => {
    const url = 'https://EXAMPLE.com:443/other?x=1';
    expect(openWebhook(VAULT, sealed({ url }))).toEqual({ ...WEBHOOK, url });
  });
});
