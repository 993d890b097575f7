import { expect, it } from '@jest/globals';
import {
  asymmetricSignature,
  keyPairSignerOf,
  publicJwkOf,
  type SignedContent,
} from '@posthorn/domain/request/signature.ts';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sampleSigningKey } from '../../../../test/support/samples/sample-signing-key.ts';

type Verify = (jwks: object, headers: Record<string, string>, body: Buffer) => boolean;

/** Returns the function in the guide's example. */
async function exampleOfGuide(): Promise<Verify> {
  const guide = readFileSync(join(import.meta.dirname, 'guide.md'), 'utf8');
  const [, code = ''] = /```js\n(.*?)```/s.exec(guide) ?? [];
  const source = `${code}\nexport { isFromPosthorn };`;
  const module = (await import(`data:text/javascript,${encodeURIComponent(source)}`)) as {
    isFromPosthorn: Verify;
  };
  return module.isFromPosthorn;
}

it('The example of the guide takes what we sign now with a published key, and nothing else', async () => {
  const isFromPosthorn = await exampleOfGuide();
  const [old, current] = [sampleSigningKey(1), sampleSigningKey(2)];
  const payload = Buffer.from('{"s":"é"}');
  const signedAt = (timestampSeconds: number, key = current): Record<string, string> => {
    const content: SignedContent = { messageId: 'msg_1', timestampSeconds, payload };
    const { standard } = keyPairSignerOf({ current: key, previous: null });
    return {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(timestampSeconds),
      'webhook-signature': `v1a,AAAA ${asymmetricSignature(standard, content)}`,
    };
  };
  const known = { keys: [old, current].map(publicJwkOf) };
  const nowSeconds = Math.floor(Date.now() / 1_000);
  const now = signedAt(nowSeconds);
  expect(isFromPosthorn(known, now, payload)).toBe(true);
  expect(isFromPosthorn({ keys: [publicJwkOf(old)] }, now, payload)).toBe(false);
  expect(isFromPosthorn(known, now, Buffer.from('{"s":"e"}'))).toBe(false);
  expect(isFromPosthorn(known, { ...now, 'webhook-id': 'msg_2' }, payload)).toBe(false);
  expect(isFromPosthorn(known, signedAt(nowSeconds - 400), payload)).toBe(false);
  expect(isFromPosthorn(known, { ...now, 'webhook-timestamp': 'x' }, payload)).toBe(false);
});
