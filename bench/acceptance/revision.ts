import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** This checkout. */
export const ROOT = join(import.meta.dirname, '../..');

export interface Revision {
  /** Where its sources are. */
  root: string;
  remove: () => void;
}

/** The folders whose packages services import as `@posthorn/…`. */
const WORKSPACES = ['libs', 'services'];
const SCOPE = '@posthorn';

/**
 * Writes the sources of a revision of this repository into a temporary folder, from which they can be imported. Packages of
 * others are those that are installed here.
 */
export function unpackRevision(revision: string): Revision {
  const root = mkdtempSync(join(tmpdir(), 'posthorn-revision-'));
  const archive = join(root, 'sources.tar');
  const wanted = ['package.json', ...WORKSPACES];
  execFileSync('git', ['archive', '--output', archive, revision, ...wanted], { cwd: ROOT });
  execFileSync('tar', ['-xf', archive, '-C', root]);
  linkPackages(root);
  return {
    root,
    remove: () => {
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function linkPackages(root: string): void {
  const [installed, linked] = [join(ROOT, 'node_modules'), join(root, 'node_modules')];
  mkdirSync(join(linked, SCOPE), { recursive: true });
  for (const name of readdirSync(installed)) {
    if (name !== SCOPE) symlinkSync(join(installed, name), join(linked, name));
  }
  for (const folder of WORKSPACES) {
    for (const name of readdirSync(join(root, folder))) {
      symlinkSync(join(root, folder, name), join(linked, SCOPE, name));
      const own = join(folder, name, 'node_modules');
      if (existsSync(join(ROOT, own))) symlinkSync(join(ROOT, own), join(root, own));
    }
  }
}
