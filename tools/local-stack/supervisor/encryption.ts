import { join } from 'node:path';
import { createEncryptionKeys } from '../../../deploy/setup/create-encryption-keys.ts';
import { readStackDir } from '../settings.ts';

/** Returns the key setting of this stack: none if the user has set one, else a random key, created once per folder. */
export function encryptionEnv(env: NodeJS.ProcessEnv): Record<string, string> {
  if (env.ENCRYPTION_KEYS || env.ENCRYPTION_KEYS_FILE) return {};
  const path = join(readStackDir(env), 'encryption-keys');
  createEncryptionKeys(path);
  return { ENCRYPTION_KEYS_FILE: path };
}
