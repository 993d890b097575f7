import { generateKeyPairSync } from 'node:crypto';
import type { SigningKey } from '@posthorn/domain/request/signature.ts';

/** The key pair of RFC 8037, appendix A, which is the first one of RFC 8032, 7.1. */
export const RFC_KEY_PAIR = {
  privateKey: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A',
  publicKey: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
};

/** Returns a key of `comp_a` whose id and number are `n`, with a random key pair. */
export function sampleSigningKey(n: number, overrides: Partial<SigningKey> = {}): SigningKey {
  const { d = '', x = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  return {
    id: `skey_${String(n).padStart(26, '0')}`,
    companyId: 'comp_a',
    number: n,
    privateKey: d,
    publicKey: x,
    createdAtMs: n * 1_000,
    previousUntilMs: null,
    ...overrides,
  };
}
