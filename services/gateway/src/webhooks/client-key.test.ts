import { describe, expect, it } from '@jest/globals';
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readClientKey } from './client-key.ts';

const KINDS = {
  kind: 'refused',
  problem: 'must be an RSA key of at most 4096 bits, or a key of P-256, P-384, P-521 or Ed25519',
};
const NOT_A_KEY = {
  kind: 'refused',
  problem: 'must be a private key in PEM that is not encrypted',
};

const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey;
const onCurve = (namedCurve: string): KeyObject =>
  generateKeyPairSync('ec', { namedCurve }).privateKey;
const pemOf = (key: KeyObject, type: 'pkcs8' | 'pkcs1' | 'sec1' = 'pkcs8'): string =>
  key.export({ type, format: 'pem' }).toString();
const armored = (label: string, der: Buffer): string =>
  `-----BEGIN ${label}-----\n${der.toString('base64')}\n-----END ${label}-----\n`;
/** The key with parts that do not belong to it. */
const changedRsa = (changed: object): string =>
  pemOf(createPrivateKey({ key: { ...rsa.export({ format: 'jwk' }), ...changed }, format: 'jwk' }));

describe('the private key of a client certificate', () => {
  it.each<[string, KeyObject, 'pkcs8' | 'pkcs1' | 'sec1']>([
    ['RSA in PKCS #8', rsa, 'pkcs8'],
    ['RSA in PKCS #1', rsa, 'pkcs1'],
    ['P-256 in PKCS #8', onCurve('P-256'), 'pkcs8'],
    ['P-384 in SEC 1', onCurve('P-384'), 'sec1'],
    ['P-521 in PKCS #8', onCurve('P-521'), 'pkcs8'],
    ['Ed25519', generateKeyPairSync('ed25519').privateKey, 'pkcs8'],
  ])('may be %s', (_what, key, type) => {
    const read = readClientKey(`# A comment\n${pemOf(key, type)}`);
    expect(read.kind === 'key' && read.key.equals(key)).toBe(true);
  });

  it('is refused without being read when it is too large for what it claims to be', () => {
    // What OpenSSL makes of them does not matter: it never sees them.
    const large = Buffer.concat([Buffer.from('308205f0020100', 'hex'), Buffer.alloc(1_500)]);
    expect(readClientKey(armored('PRIVATE KEY', large))).toEqual(KINDS);
    expect(readClientKey(armored('EC PRIVATE KEY', large))).toEqual(KINDS);
    expect(readClientKey(armored('RSA PRIVATE KEY', Buffer.alloc(2_401)))).toEqual(KINDS);
  });

  it('is refused when it is of another kind', () => {
    const { privateKey } = generateKeyPairSync('x25519');
    expect(readClientKey(pemOf(privateKey))).toEqual(KINDS);
    const pss = generateKeyPairSync('rsa-pss', { modulusLength: 2_048 }).privateKey;
    expect(readClientKey(pemOf(pss))).toEqual(KINDS);
  });

  it('is refused when its RSA factors do not belong to the modulus', () => {
    const { n } = rsa.export({ format: 'jwk' });
    expect(readClientKey(changedRsa({ p: n }))).toEqual(KINDS);
    expect(readClientKey(changedRsa({ dp: n }))).toEqual(KINDS);
    expect(readClientKey(changedRsa({ dq: n }))).toEqual(KINDS);
    expect(readClientKey(changedRsa({ e: Buffer.alloc(200, 7).toString('base64url') }))).toEqual(
      KINDS,
    );
  });

  it.each([
    ['no PEM', 'text'],
    ['another label', armored('DSA PRIVATE KEY', Buffer.alloc(10))],
    ['nothing that can be read', armored('PRIVATE KEY', Buffer.alloc(10))],
    ['the wrong label', pemOf(rsa, 'pkcs1').replaceAll('RSA PRIVATE', 'EC PRIVATE')],
  ])('is refused with %s', (_what, pem) => {
    expect([KINDS, NOT_A_KEY]).toContainEqual(readClientKey(pem));
  });
});
