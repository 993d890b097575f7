import type { mongo } from 'mongoose';
import type { SealedValueError, Vault } from '../../vault/vault.ts';
import { resealCollection, type Resealed } from '../resealing.ts';
import { openWebhook, sealWebhook } from './webhooks-sealed.ts';

/** Seals every webhook with the vault's current key and format. */
export function resealWebhooks(
  db: mongo.Db,
  vault: Vault,
  onUnopened: (problem: SealedValueError) => void,
): Promise<Resealed> {
  return resealCollection(db, vault, {
    name: 'webhooks',
    reseal(document) {
      const { sealed, keyId } = sealWebhook(vault, openWebhook(vault, document));
      return { sealed, keyId };
    },
    onUnopened,
  });
}
