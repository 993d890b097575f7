import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import {
  ACCEPTED_ADVISORIES,
  openAdvisories,
  parseSbom,
  refusedLicences,
} from './package-rules.ts';

/** Checks the packages of production: licences by the lock file, advisories by the registry. */
const ROOT = join(import.meta.dirname, '../..');
const TIMEOUT_MS = 60_000;

function npm(args: readonly string[]): string {
  const { stdout } = spawnSync('npm', args, {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
    maxBuffer: 64 * 2 ** 20,
  });
  return stdout;
}

const sbom = parseSbom(
  npm(['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', '--omit', 'dev']),
);
const refused = refusedLicences(sbom);
for (const each of refused) console.log(`This licence is not allowed: ${each}`);

const advisories = openAdvisories(npm(['audit', '--omit=dev', '--json']), ACCEPTED_ADVISORIES);
if (advisories === null) console.log('NOT CHECKED: the registry answers no audit of packages');
for (const each of advisories ?? []) console.log(`There is an advisory: ${each}`);

console.log(`${sbom.components.length} packages of production`);
process.exitCode = refused.length + (advisories?.length ?? 0) > 0 ? 1 : 0;
