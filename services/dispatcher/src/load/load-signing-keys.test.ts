import { beforeEach, describe, expect, it } from '@jest/globals';
import { keyPairSignerOf } from '@posthorn/domain/request/signing-keys.ts';
import type { FoundSigningKeys } from '@posthorn/platform/mongo/signing-keys/signing-keys.ts';
import { sampleSigningKey } from '../../../../test/support/samples/sample-signing-key.ts';
import { keepTrying } from '../../../../test/support/time/keep-trying.ts';
import { createSigningKeyLoader, type SigningKeyLoader } from './load-signing-keys.ts';

const keysOf = (n: number): FoundSigningKeys => ({
  kind: 'opened',
  keys: { current: sampleSigningKey(n), previous: null },
});

let stored: Map<string, FoundSigningKeys>;
let asked: string[][];
let loader: SigningKeyLoader;

beforeEach(() => {
  [stored, asked] = [new Map([['comp_a', keysOf(1)]]), []];
  loader = createSigningKeyLoader({
    signingKeys: {
      findMany(companyIds) {
        asked.push([...companyIds]);
        return Promise.resolve(stored);
      },
    },
    keepTrying,
    nowMs: () => 0,
  });
});

describe('the loader of signing keys', () => {
  it('makes the signer of a company once, also for many webhooks', async () => {
    const [one, two] = await Promise.all([loader.load('comp_a'), loader.load('comp_a')]);
    const again = await loader.load('comp_a');
    expect(one.kind === 'opened' && one.signer.standard.asymmetricKeyType).toBe('ed25519');
    expect([two === one, again === one]).toEqual([true, true]);
    expect(asked).toEqual([['comp_a']]);
    expect(loader.usedBytes()).toBeGreaterThan(0);
  });

  it('reads the keys again after a rotation was announced', async () => {
    await loader.load('comp_a');
    const rotated = keysOf(2);
    stored.set('comp_a', rotated);
    loader.forget('comp_a');
    const found = await loader.load('comp_a');
    if (rotated.kind !== 'opened' || found.kind !== 'opened') throw new Error('not opened');
    const { standard } = keyPairSignerOf(rotated.keys);
    expect(found.signer.standard.equals(standard)).toBe(true);
  });

  it('returns a problem for a company without keys, and asks again the next time', async () => {
    const found = await loader.load('comp_b');
    expect(found).toMatchObject({ problem: { message: 'the company has no signing keys' } });
    stored.set('comp_b', keysOf(1));
    expect((await loader.load('comp_b')).kind).toBe('opened');
  });
});
