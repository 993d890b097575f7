import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './program.ts';

/** Files that every check reads: a change of one of them may concern any file. */
const CONCERNS_ALL =
  /^(package(-lock)?\.json|tsconfig.*\.json|jest\.config\.js|eslint\.config\.js|\.(oxlint|prettier)rc\.json|test\/runner\/.*\.mjs)$/;

/**
 * Returns the files, by their paths from the root, that differ from the main branch or from what is committed; null when
 * that may concern every file, or when nothing differs.
 */
export function findChanges(git: (...args: string[]) => string[] = runGit): string[] | null {
  const [base = 'HEAD'] = git('merge-base', 'HEAD', 'origin/main');
  const changed = [
    ...git('diff', '--name-only', base),
    ...git('ls-files', '--others', '--exclude-standard'),
  ];
  if (changed.length === 0 || changed.some((path) => CONCERNS_ALL.test(path))) return null;
  return [...new Set(changed)].filter((path) => existsSync(join(ROOT, path)));
}

/** Returns the lines that git prints; none when it fails, such as for a branch that is not there. */
function runGit(...args: string[]): string[] {
  const { status, stdout } = spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' });
  return status === 0 ? stdout.split('\n').filter((line) => line !== '') : [];
}
