import { describe, expect, it } from '@jest/globals';
import { createFirstFormatVault } from '../../../../../test/support/samples/first-format-vault.ts';
import { randomKey, sampleWebhook } from '../../../../../test/support/samples/sample-webhook.ts';
import { createVault, SealedValueError, type Vault } from '../../security/vault.ts';
import type { WebhookDocument } from '../documents.ts';
import { openWebhook, sealWebhook } from './webhooks.ts';

const KEY = randomKey('k1');
const VAULT = createVault([KEY]);
const FIRST = createFirstFormatVault(KEY);
const WEBHOOK = sampleWebhook(1, { url: 'https://example.com/hook' });

const sealedBy = (vault: Vault, changed: Partial<WebhookDocument> = {}): WebhookDocument => ({
  ...sealWebhook(vault, WEBHOOK),
  ...changed,
});
const opening = (document: WebhookDocument) => () => openWebhook(VAULT, document);

describe.each([
  ['1', FIRST],
  ['2', VAULT],
])('a webhook sealed in format %s', (version, vault) => {
  it('is opened', () => {
    const document = sealedBy(vault);
    expect(Object.values(document.sealed)).toEqual(
      Array(4).fill(expect.stringMatching(new RegExp(`^v${version}\\.k1\\.`))),
    );
    expect(openWebhook(VAULT, document)).toEqual(WEBHOOK);
  });

  it('has its TLS settings sealed too, and no such value without them', () => {
    const tls = { client: { certificate: 'chain', key: 'hush-key' }, ca: null };
    const document = sealWebhook(vault, { ...WEBHOOK, tls });
    expect(JSON.stringify(document)).not.toContain('hush');
    expect(openWebhook(VAULT, document)).toEqual({ ...WEBHOOK, tls });
    expect(sealedBy(vault).sealed).not.toHaveProperty('tls');
  });

  it('is opened with the defaults for what an earlier version did not store', () => {
    const { timeoutSeconds, signatureHeaders, ...document } = sealedBy(vault);
    expect({ timeoutSeconds, signatureHeaders }).toEqual({
      timeoutSeconds: null,
      signatureHeaders: ['webhook'],
    });
    expect(openWebhook(FIRST, document as WebhookDocument)).toEqual(WEBHOOK);
  });

  it('is not opened with a value of another webhook or field, or of another format', () => {
    const document = sealedBy(vault);
    const other = sealWebhook(vault, sampleWebhook(2));
    const { secret, authMethod } = document.sealed;
    const moved = [
      { ...document.sealed, secret: other.sealed.secret },
      { ...document.sealed, secret: authMethod },
      { ...document.sealed, secret: `${version === '1' ? 'v2' : 'v1'}${secret.slice(2)}` },
    ];
    for (const sealed of moved) {
      expect(opening({ ...document, sealed })).toThrow(SealedValueError);
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
    expect(opening(sealedBy(VAULT, { url }))).toThrow(/was changed or moved$/);
  });

  it.each(ELSEWHERE)('is not bound in format 1, and opens when it became %s', (url) => {
    expect(openWebhook(VAULT, sealedBy(FIRST, { url }))).toEqual({ ...WEBHOOK, url });
  });

  it('may get another path, or be written in another way', () => {
    const stored = 'https://EXAMPLE.com:443/other?x=1';
    const url = 'https://example.com/other?x=1';
    expect(openWebhook(VAULT, sealedBy(VAULT, { url: stored }))).toEqual({ ...WEBHOOK, url });
  });

  it('is percent-encoded when an earlier version stored it, like that of a token server', () => {
    const tokenUrl = 'https://login.example.com/token?tenant={a|b}';
    const oauth2 = { method: 'oauth2', tokenUrl, clientId: 'i', clientSecret: 's' } as const;
    const rest = { scope: null, audience: null, clientAuthentication: 'basic' } as const;
    const url = 'https://example.com/a|b?q=x|y^z';
    const webhook = { ...WEBHOOK, url, authMethod: { ...oauth2, ...rest } };
    expect(openWebhook(VAULT, sealWebhook(VAULT, webhook))).toMatchObject({
      url: 'https://example.com/a%7Cb?q=x%7Cy%5Ez',
      authMethod: { tokenUrl: 'https://login.example.com/token?tenant=%7Ba%7Cb%7D' },
    });
  });
});
