import { describe, expect, test } from '@jest/globals';
import { getPublicKeyAsync, signAsync } from '@noble/ed25519';
import fc from 'fast-check';
import { createHmac, randomBytes } from 'node:crypto';
import { Webhook as Verifier } from 'standardwebhooks';
import { verifiedBy } from '../../../../test/support/receivers/verify-with-jwks.ts';
import {
  RFC_KEY_PAIR,
  sampleSigningKey,
} from '../../../../test/support/samples/sample-signing-key.ts';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import type { Webhook } from '../webhook.ts';
import { deliveryHeaders, type SignedParts, signerOf } from './delivery-headers.ts';
import {
  asymmetricSignature,
  hmacKey,
  hmacSignature,
  keyPairSignerOf,
  publicJwkOf,
  secretFromBytes,
  type SigningKeys,
  standardKey,
  standardPublicKey,
  standardSignature,
} from './signature.ts';

describe('the Standard Webhooks signature [security]', () => {
  test('agrees with the vector of the specification', () => {
    const key = standardKey('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
    const signature = standardSignature(key, {
      messageId: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      timestampSeconds: 1_614_265_330,
      payload: Buffer.from('{"test": 2432232314}'),
    });
    expect(signature).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
  });

  test('agrees with the reference library for any secret, id, time and payload', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.stringMatching(/^msg_[0-9a-z]{26}$/),
        fc.integer({ min: 0, max: 4_102_444_800 }),
        fc.string({ unit: 'grapheme' }),
        (bytes, messageId, timestampSeconds, text) => {
          const secret = secretFromBytes(Buffer.from(bytes));
          const signed = { messageId, timestampSeconds, payload: Buffer.from(text) };
          const at = new Date(timestampSeconds * 1_000);
          const expected = new Verifier(secret).sign(messageId, at, text);
          expect(standardSignature(standardKey(secret), signed)).toBe(expected);
        },
      ),
    );
  });

  test('is over bytes, so that a payload need not be text', () => {
    const key = standardKey(secretFromBytes(randomBytes(32)));
    const sign = (payload: Buffer) =>
      standardSignature(key, { messageId: 'msg_1', timestampSeconds: 1, payload });
    // Both become U+FFFD as text.
    expect(sign(Buffer.from([0xff]))).not.toBe(sign(Buffer.from([0xfe])));
  });
});

describe('the HMAC signature [security]', () => {
  test('is the hex HMAC SHA-256 of the payload under the secret as shown, prefix included', () => {
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const expected = createHmac('sha256', Buffer.from(secret)).update('{"a":1}').digest('hex');
    expect(hmacSignature(hmacKey(secret), '{"a":1}')).toBe(expected);
    expect(hmacSignature(hmacKey(secret), Buffer.from('{"a":1}'))).toBe(expected);
    expect(hmacSignature(hmacKey(secret.slice(6)), '{"a":1}')).not.toBe(expected);
  });

  test('agrees with the second vector of RFC 4231', () => {
    expect(hmacSignature(hmacKey('Jefe'), 'what do ya want for nothing?')).toBe(
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    );
  });

  test('takes a secret of a customer that is not ASCII as UTF-8', () => {
    const expected = createHmac('sha256', Buffer.from('schlüssel', 'utf8'))
      .update('x')
      .digest('hex');
    expect(hmacSignature(hmacKey('schlüssel'), 'x')).toBe(expected);
  });
});

describe('a secret [security]', () => {
  test('is the prefix and the base64 of its bytes', () => {
    expect(secretFromBytes(Buffer.alloc(32, 1))).toBe(
      'whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=',
    );
  });
});

const rfcKey = sampleSigningKey(1, RFC_KEY_PAIR);

describe('an Ed25519 signature [security]', () => {
  test('agrees with an independent implementation for any key, id, time and payload', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.stringMatching(/^msg_[0-9a-z]{26}$/),
        fc.integer({ min: 0, max: 4_102_444_800 }),
        fc.uint8Array({ maxLength: 2_000 }),
        async (seed, messageId, timestampSeconds, bytes) => {
          const privateKey = Buffer.from(seed).toString('base64url');
          const publicKey = Buffer.from(await getPublicKeyAsync(seed)).toString('base64url');
          const key = sampleSigningKey(1, { privateKey, publicKey });
          const { standard } = keyPairSignerOf({ current: key, previous: null });
          const payload = Buffer.from(bytes);
          const content = Buffer.concat([
            Buffer.from(`${messageId}.${timestampSeconds}.`),
            payload,
          ]);
          const expected = Buffer.from(await signAsync(content, seed)).toString('base64');
          expect(asymmetricSignature(standard, { messageId, timestampSeconds, payload })).toBe(
            `v1a,${expected}`,
          );
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe('a public key [security]', () => {
  test('is spelled as in RFC 8037, appendix A.2', () => {
    expect(publicJwkOf(rfcKey)).toEqual({
      kty: 'OKP',
      crv: 'Ed25519',
      x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
      kid: rfcKey.id,
      use: 'sig',
      alg: 'EdDSA',
    });
  });

  test('is spelled with its prefix, in base64, for Standard Webhooks', () => {
    expect(standardPublicKey(rfcKey)).toBe('whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=');
  });
});

describe('a webhook that the keys of its company sign [security]', () => {
  const GRACE_ENDS_MS = 1_700_000_000_000;
  const before = sampleSigningKey(1);
  const current = sampleSigningKey(2, { previousUntilMs: GRACE_ENDS_MS });
  const rotated: SigningKeys = {
    current,
    previous: { key: before, expiresAtMs: GRACE_ENDS_MS },
  };
  const secret = secretFromBytes(Buffer.alloc(32, 7));
  const webhook: Webhook = sampleWebhook(1, {
    secret,
    previousSecret: null,
    authMethod: {
      method: 'hmac',
      hmacHeader: 'X-Service-Signature',
      hmacSecret: secret,
      signatureAlgorithm: 'ed25519',
    },
  });
  const partsAt = (ms: number): SignedParts => ({
    messageId: 'msg_1',
    timestampSeconds: Math.floor(ms / 1_000),
    payload: Buffer.from('{"n":12345678901234567890,"s":"é"}'),
  });

  function receivedAt(ms: number, keys: SigningKeys = rotated) {
    const parts = partsAt(ms);
    const flat = deliveryHeaders(webhook, keyPairSignerOf(keys), parts, 'Posthorn/1');
    const pairs = flat.flatMap((name, index) => (index % 2 ? [] : [[name, flat[index + 1]]]));
    const headers = Object.fromEntries(pairs) as Record<string, string>;
    return { headers, body: parts.payload };
  }
  const jwks = { keys: [before, current].map(publicJwkOf) };

  test('gets one v1a signature, and nothing that its secrets make', async () => {
    const got = receivedAt(1_000, { current, previous: null });
    expect(Object.keys(got.headers)).toEqual([
      'Content-Type',
      'User-Agent',
      'Accept',
      'Accept-Encoding',
      'X-Tenant',
      'webhook-id',
      'webhook-timestamp',
      'webhook-signature',
    ]);
    expect(got.headers['webhook-signature']).toMatch(/^v1a,[A-Za-z0-9+/]{86}==$/);
    expect(await verifiedBy(jwks, got)).toEqual([current.id]);
  });

  test('gets signatures of both keys during the grace, the new one first', async () => {
    expect(await verifiedBy(jwks, receivedAt(GRACE_ENDS_MS - 1_000))).toEqual([
      current.id,
      before.id,
    ]);
  });

  test('gets that of the new key alone from the end of the grace on', async () => {
    expect(await verifiedBy(jwks, receivedAt(GRACE_ENDS_MS))).toEqual([current.id]);
  });

  test('gets signatures that verify for no other id, time or payload', async () => {
    const got = receivedAt(GRACE_ENDS_MS);
    for (const changes of [{ 'webhook-id': 'msg_2' }, { 'webhook-timestamp': '1' }]) {
      const headers = { ...got.headers, ...changes };
      expect(await verifiedBy(jwks, { headers, body: got.body })).toEqual([]);
    }
    const body = Buffer.concat([got.body, Buffer.from(' ')]);
    expect(await verifiedBy(jwks, { headers: got.headers, body })).toEqual([]);
  });

  test('is never signed by its secrets, and no other webhook by the keys', () => {
    const parts = partsAt(0);
    const unfit = 'cannot sign for this webhook';
    expect(() => deliveryHeaders(webhook, signerOf(webhook), parts, 'Posthorn/1')).toThrow(unfit);
    const other = sampleWebhook(2);
    const signer = keyPairSignerOf(rotated);
    expect(() => deliveryHeaders(other, signer, parts, 'Posthorn/1')).toThrow(unfit);
  });
});
