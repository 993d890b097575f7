import { execFile, execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { StackError } from '../../tools/local-stack/stack-error.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

const SOURCES = ['services', 'libs', 'deploy', 'package.json', 'package-lock.json'];
const OWN = '@posthorn';

/** Copies the sources of the services, as they are now, into a folder. */
export function copySources(to: string): void {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  const filter = (path: string): boolean => basename(path) !== 'node_modules';
  for (const name of SOURCES) cpSync(join(ROOT, name), join(to, name), { recursive: true, filter });
  linkPackages(to);
}

/**
 * Writes the sources of a git reference into a folder. Rejects when there is no such reference. The
 * load comes from this process meanwhile: installing packages takes 14 s, and must not stop it.
 */
export async function checkOutSources(reference: string, to: string): Promise<void> {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  const archive = join(to, 'sources.tar');
  try {
    const commit = git('rev-parse', '--verify', '--end-of-options', `${reference}^{commit}`);
    git('archive', '--format=tar', '-o', archive, commit, ...SOURCES);
  } catch (error) {
    throw new StackError(`There is no commit "${reference}" with the services: ${String(error)}`);
  }
  await run('tar', ['-xf', archive, '-C', to]);
  rmSync(archive);
  await installPackages(to);
}

/** The newest tag that the present commit descends from; null without one. */
export function lastTag(): string | null {
  try {
    return git('describe', '--tags', '--abbrev=0');
  } catch {
    return null;
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim();
}

/** Links the packages of this checkout when both versions have the same lock file; otherwise installs them. */
async function installPackages(folder: string): Promise<void> {
  const lockOf = (root: string): string => readFileSync(join(root, 'package-lock.json'), 'utf8');
  if (lockOf(folder) === lockOf(ROOT)) {
    linkPackages(folder);
    return;
  }
  await run('npm', ['ci', '--omit=dev', '--loglevel=error'], { cwd: folder });
}

/** Links every package of this checkout, except those of Posthorn, which are linked to the sources in the folder. */
function linkPackages(folder: string): void {
  const modules = join(folder, 'node_modules');
  if (existsSync(modules)) return;
  mkdirSync(join(modules, OWN), { recursive: true });
  const names = readdirSync(join(ROOT, 'node_modules'));
  for (const name of names.filter((each) => each !== OWN && each !== '.cache')) {
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
  for (const floor of ['libs', 'services']) {
    for (const name of readdirSync(join(folder, floor))) {
      symlinkSync(join(folder, floor, name), join(modules, OWN, name));
      // A package of which another one needs a different version lies beside the sources that use it.
      const own = join(ROOT, floor, name, 'node_modules');
      if (existsSync(own)) symlinkSync(own, join(folder, floor, name, 'node_modules'));
    }
  }
}

/** One place of the sources to be changed. */
export interface Change {
  file: string;
  find: string;
  replace: string;
}

/** Throws when the text is not there exactly once: the source has changed, and this change no longer fits. */
export function changeSource(folder: string, { file, find, replace }: Change): void {
  const path = join(folder, file);
  const before = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const places = before.split(find).length - 1;
  if (places !== 1) {
    throw new StackError(`${file} has ${places} places with this text instead of one: ${find}`);
  }
  writeFileSync(
    path,
    before.replace(find, () => replace),
  );
}
