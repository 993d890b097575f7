import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const KEY_BYTES = 32;
const ID_BYTES = 4;

/**
 * Returns a random key in the format of ENCRYPTION_KEYS. Its id is random too, so that it cannot be confused with a
 * lost key.
 */
export function newEncryptionKey(): string {
  const id = `k${randomBytes(ID_BYTES).toString('hex')}`;
  return `${id}:${randomBytes(KEY_BYTES).toString('base64')}`;
}

/**
 * Writes one random key to a file that only its owner can read, unless the file exists. Several processes may do this
 * at the same time: the link is created when the file is complete, and the first link wins.
 */
export function createEncryptionKeys(path: string, link = linkSync): void {
  if (existsSync(path)) return;
  mkdirSync(dirname(path), { recursive: true });
  const line = `${newEncryptionKey()}\n`;
  // Not the process id: in containers that share a volume it is often the same.
  const unfinished = `${path}.${randomBytes(ID_BYTES).toString('hex')}.tmp`;
  writeFileSync(unfinished, line, { mode: 0o600 });
  try {
    link(unfinished, path);
  } catch {
    createWithoutLink(path, line);
  } finally {
    rmSync(unfinished, { force: true });
  }
}

/** For file systems without hard links (FAT, SMB, some container volumes); the first process wins here too. */
function createWithoutLink(path: string, line: string): void {
  if (existsSync(path)) return;
  try {
    writeFileSync(path, line, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if (!existsSync(path)) throw error;
  }
}

if (import.meta.main) {
  const [, , path] = process.argv;
  if (path === undefined) throw new Error('Usage: create-encryption-keys.ts PATH');
  createEncryptionKeys(path);
}
