import { describe, expect, it } from '@jest/globals';
import { parseConfig } from '@posthorn/platform/service/config.ts';
import { newEncryptionKey } from '../../../deploy/setup/create-encryption-keys.ts';
import { gatewayConfig, signInConfigOf } from './config.ts';

const ENV = {
  KAFKA_BROKERS: '127.0.0.1:9092',
  MONGODB_URL: 'mongodb://127.0.0.1/posthorn',
  REDIS_URL: 'redis://127.0.0.1',
  ALLOW_PLAINTEXT_STORES: 'true',
  ENCRYPTION_KEYS: newEncryptionKey(),
};
const PEOPLE = {
  OIDC_ISSUER: 'https://login.example.com',
  OIDC_CLIENT_ID: 'posthorn',
  PUBLIC_URL: 'https://hooks.example.com/posthorn/',
};

const read = (env: Record<string, string>) =>
  signInConfigOf(parseConfig('gateway', gatewayConfig, { ...ENV, ...env }));

describe('the settings of people', () => {
  it('are none without an issuer', () => {
    expect(read({ OIDC_CLIENT_ID: 'posthorn' })).toBeNull();
  });

  it('have defaults', () => {
    expect(read(PEOPLE)).toEqual({
      issuer: 'https://login.example.com',
      clientId: 'posthorn',
      clientSecret: undefined,
      scopes: 'openid profile email',
      groupsClaim: 'groups',
      sessionMs: 8 * 3_600_000,
      isOnly: false,
      publicUrl: 'https://hooks.example.com/posthorn',
    });
    expect(read({ ...PEOPLE, OIDC_ISSUER: 'http://127.0.0.1:9000' })).toMatchObject({
      issuer: 'http://127.0.0.1:9000',
    });
  });

  it.each<[string, Record<string, string>]>([
    ['PUBLIC_URL', { ...PEOPLE, PUBLIC_URL: '' }],
    ['OIDC_CLIENT_ID', { ...PEOPLE, OIDC_CLIENT_ID: '' }],
    ['OIDC_ISSUER', { ...PEOPLE, OIDC_ISSUER: 'http://login.example.com' }],
    ['OIDC_ISSUER', { ...PEOPLE, OIDC_ISSUER: 'http://127.0.0.1.example.com' }],
    ['OIDC_ISSUER', { ...PEOPLE, OIDC_ISSUER: 'https://login.example.com?tenant=1' }],
    ['OIDC_ISSUER', { ...PEOPLE, OIDC_ISSUER: 'https://user:secret@login.example.com' }],
    ['OIDC_SESSION', { ...PEOPLE, OIDC_SESSION: '14m' }],
    ['OIDC_SESSION', { ...PEOPLE, OIDC_SESSION: '25h' }],
    ['OIDC_SCOPES', { ...PEOPLE, OIDC_SCOPES: 'profile' }],
    ['OIDC_ONLY', { OIDC_ONLY: 'true' }],
  ])('stop the start for %s', (name, env) => {
    expect(() => read(env)).toThrow(`  ${name}: `);
  });
});
