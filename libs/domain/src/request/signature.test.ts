import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createHmac, randomBytes } from 'node:crypto';
import { Webhook as Verifier } from 'standardwebhooks';
import {
  hmacKey,
  hmacSignature,
  secretFromBytes,
  standardKey,
  standardSignature,
} from './signature.ts';

describe('the Standard Webhooks signature', () => {
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

describe('the HMAC signature', () => {
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

describe('a secret', () => {
  test('is the prefix and the base64 of its bytes', () => {
    expect(secretFromBytes(Buffer.alloc(32, 1))).toBe(
      'whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=',
    );
  });
});
