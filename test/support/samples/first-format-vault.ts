import { createCipheriv, randomBytes } from 'node:crypto';
import { createVault, type EncryptionKey, type Vault } from '@posthorn/platform/security/vault.ts';

/** Seals in the first format, which earlier versions wrote (docs/decisions/0009-secrets-at-rest.md). */
export function createFirstFormatVault(key: EncryptionKey): Vault {
  return {
    ...createVault([key]),
    seal(plain, { companyId, ownerId, field }) {
      const iv = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key.key, iv, { authTagLength: 16 });
      cipher.setAAD(Buffer.from(JSON.stringify(['v1', key.id, companyId, ownerId, field])));
      const ciphertext = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
      const texts = [iv, ciphertext, cipher.getAuthTag()].map((part) => part.toString('base64url'));
      return ['v1', key.id, ...texts].join('.');
    },
  };
}
