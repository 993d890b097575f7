import { parseArgs } from 'node:util';
import {
  compareWithPython,
  installReference,
} from '../../libs/verify/check/compare-with-python.ts';
import { findDisagreement } from '../../libs/verify/check/random-bodies.ts';
import {
  type BuiltPackage,
  buildPackage,
  gzipBytesOf,
  programsFolder,
  PUBLISHED,
  type PublishedPackage,
} from './build-package.ts';
import { problemsOf } from './lint-package.ts';
import { QUICK_RUNTIMES, RUNTIMES, writeTestPrograms } from './runtimes.ts';

const USAGE = `npm run packages -- build            write the packages that npm publishes
npm run packages -- check [--quick]  and check them: manifest, types, sizes, each runtime, Python's reference library
npm run packages -- agree [--bodies 1000000] [--seed N]
                                     compare @posthorn/verify with the reference library on random bodies`;

const PYTHON_BODIES = 2_000;

let failures = 0;

/** Prints how a check has ended. A check whose needs cannot be had is not checked, and says so. */
async function check<T>(
  name: string,
  install: () => Promise<T>,
  run: (installed: T) => Promise<string | undefined>,
): Promise<void> {
  let installed: T;
  try {
    installed = await install();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    console.log(`NOT CHECKED: ${name}. It cannot be had here: ${reason}`);
    return;
  }
  try {
    console.log(
      `good    ${name}${((result) => (result ? `: ${result}` : ''))(await run(installed))}`,
    );
  } catch (error) {
    failures += 1;
    console.log(`FAILED  ${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const nothing = (): Promise<void> => Promise.resolve();

async function checkPackage(published: PublishedPackage, isQuick: boolean): Promise<void> {
  const built = await buildPackage(published);
  const { name } = built;
  await check(`${name}: manifest and types`, nothing, async () => {
    const problems = await problemsOf(built);
    if (problems.length > 0) throw new Error(problems.join('\n'));
    return 'publint and are-the-types-wrong find nothing';
  });
  await check(`${name}: sizes`, nothing, () => checkSizes(built, published));
  const programs = await writeTestPrograms(built);
  for (const { name: runtime, install, run } of isQuick ? QUICK_RUNTIMES : RUNTIMES) {
    await check(`${name}: ${runtime}`, install, async (program) => {
      await run(program, programs);
      return undefined;
    });
  }
}

async function checkSizes(
  built: BuiltPackage,
  { maxGzipBytes }: PublishedPackage,
): Promise<string> {
  const sizes = [...(await gzipBytesOf(built))];
  const shown = sizes.map(([entry, bytes]) => `${entry} ${bytes}`).join(', ');
  const isTooLarge = sizes.some(
    ([entry, bytes]) => bytes > (maxGzipBytes[entry] ?? maxGzipBytes.others),
  );
  if (isTooLarge) throw new Error(`${shown}; allowed: ${JSON.stringify(maxGzipBytes)}`);
  return `${shown} bytes`;
}

async function checkPackages(isQuick: boolean): Promise<void> {
  for (const published of PUBLISHED) await checkPackage(published, isQuick);
  if (isQuick) return;
  await check("@posthorn/verify: Python's standardwebhooks", installReference, async (path) => {
    await compareWithPython(path, { folder: programsFolder(), bodies: PYTHON_BODIES });
    return `${PYTHON_BODIES} bodies both ways`;
  });
}

async function agree(bodies: number, seed: number): Promise<void> {
  console.log(`${bodies} random bodies, --seed ${seed}`);
  const startedMs = performance.now();
  await check('@posthorn/verify: standardwebhooks', nothing, async () => {
    const found = await findDisagreement(bodies, seed, (done) => {
      if (done % 100_000 === 0) console.log(`${done} bodies`);
    });
    if (found !== null) throw new Error(found);
    return `agrees about ${bodies} bodies, in ${Math.round((performance.now() - startedMs) / 1_000)} s`;
  });
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    bodies: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
switch (positionals.join(' ')) {
  case 'build':
    for (const published of PUBLISHED) console.log((await buildPackage(published)).folder);
    break;
  case 'check':
    await checkPackages(values.quick);
    break;
  case 'agree':
    await agree(Number(values.bodies), Number(values.seed));
    break;
  default:
    console.error(USAGE);
    failures = 1;
}
process.exitCode = failures > 0 ? 1 : 0;
