import type { SigningKey, SigningKeys } from '@posthorn/domain/request/signature.ts';
import { SealedValueError, type Vault } from '../../vault/vault.ts';
import type { SigningKeyDocument } from '../documents/documents.ts';

/**
 * What is sealed of a key. The public key too: who can write to the database must not be able to
 * publish another one. And the number and the end of the grace, which decide which keys sign.
 */
type SealedPart = Omit<SigningKey, 'id' | 'companyId' | 'createdAtMs'>;

export function sealSigningKey(vault: Vault, key: SigningKey): SigningKeyDocument {
  const { id: _id, companyId, createdAtMs, ...part } = key;
  const sealed = vault.seal(JSON.stringify(part satisfies SealedPart), bindingOf(_id, companyId));
  const createdAt = new Date(createdAtMs);
  return { _id, companyId, number: key.number, sealed, keyId: vault.keyIdOf(sealed), createdAt };
}

/** Throws SealedValueError unless the key was sealed for this company, id and number. */
export function openSigningKey(vault: Vault, document: SigningKeyDocument): SigningKey {
  const { _id: id, companyId, number, createdAt } = document;
  const plain = vault.open(document.sealed, bindingOf(id, companyId));
  // A value that opens was written by sealSigningKey, so its JSON has the right shape.
  const part = JSON.parse(plain) as SealedPart;
  if (part.number !== number) {
    throw new SealedValueError(`the number of ${id} was changed`, document.keyId);
  }
  return { id, companyId, createdAtMs: createdAt.getTime(), ...part };
}

/**
 * Returns the keys that sign now, of the documents of one company, newest first. Opens no others, so that one
 * that does not open can be rotated away. Null without documents. Throws SealedValueError.
 */
export function openKeysAt(
  vault: Vault,
  [newest, before]: readonly SigningKeyDocument[],
  nowMs: number,
): SigningKeys | null {
  if (!newest) return null;
  const current = openSigningKey(vault, newest);
  const { previousUntilMs: expiresAtMs } = current;
  if (!before || expiresAtMs === null || expiresAtMs <= nowMs) return { current, previous: null };
  return { current, previous: { key: openSigningKey(vault, before), expiresAtMs } };
}

function bindingOf(ownerId: string, companyId: string) {
  return { companyId, ownerId, field: 'signingKey' };
}
