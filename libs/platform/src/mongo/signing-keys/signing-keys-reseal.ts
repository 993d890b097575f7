import type { mongo } from 'mongoose';
import type { SealedValueError, Vault } from '../../vault/vault.ts';
import { resealCollection, type Resealed } from '../resealing.ts';
import { openSigningKey, sealSigningKey } from './signing-keys-sealed.ts';

/** Seals every signing key with the vault's current key and format. */
export function resealSigningKeys(
  db: mongo.Db,
  vault: Vault,
  onUnopened: (problem: SealedValueError) => void,
): Promise<Resealed> {
  return resealCollection(db, vault, {
    name: 'signingKeys',
    reseal(document) {
      const { sealed, keyId } = sealSigningKey(vault, openSigningKey(vault, document));
      return { sealed, keyId };
    },
    onUnopened,
  });
}
