import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const KEY_BYTES = 32;
const ID_BYTES = 4;

/** A random key as ENCRYPTION_KEYS takes it; its id is random too, so that a lost key is never mistaken for this one. */
export function newEncryptionKey(): string {
  const id = `k${randomBytes(ID_BYTES).toString('hex')}`;
  return `${id}:${randomBytes(KEY_BYTES).toString('base64')}`;
}

/**
 * Puts one random key into a file that only its owner can read, unless the file is there. Several may do this at once:
 * the link exists only when the file is whole, and the first one wins.
 */
export function createEncryptionKeys(path: string, link = linkSync): void {
  if (existsSync(path)) return;
  mkdirSync(dirname(path), { recursive: true });
  const line = `${newEncryptionKey()}\n`;
  // Not by the process id: in containers that share a volume it is often the same.
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

/** Some file systems (FAT, SMB, some volumes of containers) know no hard links; the first one wins here too. */
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
  if (path === undefined) throw new Error('Name the file: create-encryption-keys.ts PATH');
  createEncryptionKeys(path);
}
