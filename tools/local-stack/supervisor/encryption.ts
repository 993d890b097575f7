import { join } from 'node:path';
import { createEncryptionKeys } from '../../../deploy/setup/create-encryption-keys.ts';
import { readStackDir } from '../settings.ts';

/** The keys of this stack: what the user has set, else a random one, made once for its folder. */
export function encryptionEnv(env: NodeJS.ProcessEnv): Record<string, string> {
  if (env.ENCRYPTION_KEYS || env.ENCRYPTION_KEYS_FILE) return {};
  const path = join(readStackDir(env), 'encryption-keys');
  createEncryptionKeys(path);
  return { ENCRYPTION_KEYS_FILE: path };
}
