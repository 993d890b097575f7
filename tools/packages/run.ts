import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  compareWithPython,
  installReference,
} from '../../libs/verify/check/compare-with-python.ts';
import { findDisagreement } from '../../libs/verify/check/random-bodies.ts';
import { startFaultyProxy } from '../../libs/client/check/faulty-proxy.ts';
import { sendMany, startCountingApi } from '../../libs/client/check/send-through-faults.ts';
import { collectGarbage } from '../../test/support/process/collect-garbage.ts';
import { runProgram } from '../check-ops/programs/run-program.ts';
import { createRandom } from '../../test/support/samples/seeded-random.ts';
import {
  type BuiltPackage,
  buildCommandLine,
  buildPackage,
  gzipBytesOf,
  programsFolder,
  PUBLISHED,
  type PublishedPackage,
} from './build-package.ts';
import { problemsOf, problemsOfManifest } from './lint-package.ts';
import { QUICK_RUNTIMES, RUNTIMES, writeTestPrograms } from './runtimes.ts';

const USAGE = `npm run packages -- build            write the packages that npm publishes
npm run packages -- check [--quick]  and check them: manifest, types, sizes, each runtime, Python's reference library
npm run packages -- agree [--bodies 1000000] [--seed N]
                                     compare @posthorn/verify with the reference library on random bodies
npm run packages -- send [--sends 100000] [--seed N]
                                     send messages with @posthorn/client through faults, and watch its memory`;

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

/** The command line prints its help, from the folder that is published and, unless the check is quick, as npm installs it. */
async function checkCommandLine(isQuick: boolean): Promise<void> {
  const folder = await buildCommandLine();
  await check('posthorn: manifest', nothing, async () => {
    const problems = await problemsOfManifest(folder);
    if (problems.length > 0) throw new Error(problems.join('\n'));
    return 'publint finds nothing';
  });
  for (const { name, install } of isQuick ? QUICK_RUNTIMES : RUNTIMES) {
    if (!/^node .* esm$/.test(name)) continue;
    await check(`posthorn: ${name}`, install, (node) => printsHelp(node, join(folder, 'main.js')));
  }
  if (isQuick) return;
  await check('posthorn: installed by npm', installPublished, (program) =>
    printsHelp(process.execPath, program),
  );
}

async function printsHelp(node: string, program: string): Promise<undefined> {
  const help = await runProgram(node, [program, '--help'], { cwd: programsFolder() });
  if (!help.includes('posthorn')) throw new Error(`printed ${JSON.stringify(help)}`);
}

/** Installs what would be published into an empty folder, and returns the path of the command line there. */
async function installPublished(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-packages-'));
  const names = ['posthorn', ...PUBLISHED.map((each) => `@posthorn/${each.folder}`)];
  const packed = [];
  for (const name of names) {
    const from = join(programsFolder(), 'node_modules', name);
    const args = ['pack', from, '--pack-destination', folder, '--silent'];
    packed.push(join(folder, (await runProgram('npm', args)).trim()));
  }
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  const quietly = ['--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  await runProgram('npm', ['install', ...quietly, ...packed], { cwd: folder });
  return join(folder, 'node_modules/posthorn/main.js');
}

async function checkPackages(isQuick: boolean): Promise<void> {
  for (const published of PUBLISHED) await checkPackage(published, isQuick);
  await checkCommandLine(isQuick);
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

/** Of the requests. */
const FAULTS_SHARE = 0.3;
/** Of the heap after a tenth and after all sends. Sends that keep 100 bytes each would need 9 MB. */
const MAX_GROWTH_BYTES = 4 * 2 ** 20;

/** Sends messages to an API in this process through a proxy with faults. */
async function sendThroughFaults(sends: number, seed: number): Promise<void> {
  console.log(`${sends} sends, --seed ${seed}`);
  const heaps: number[] = [];
  await check('@posthorn/client: sends through faults', nothing, async () => {
    const api = await startCountingApi(sends);
    const faults = { share: FAULTS_SHARE, random: createRandom(seed) };
    const proxy = await startFaultyProxy(api.baseUrl, faults);
    const onProgress = (sent: number): void => {
      if (sent % Math.ceil(sends / 10) !== 0) return;
      collectGarbage();
      heaps.push(process.memoryUsage().heapUsed);
      console.log(`${sent} sent, heap ${(Number(heaps.at(-1)) / 2 ** 20).toFixed(1)} MiB`);
    };
    const { baseUrl } = proxy;
    try {
      const limits = { sends, atOnce: 200, timeoutMs: 5_000, onProgress };
      await sendMany({ baseUrl, apiKey: 'phk_1', appId: 'app_1', ...limits });
    } finally {
      await Promise.all([proxy.close(), api.close()]);
    }
    const wrong = api.accepted.filter((count) => count !== 1).length;
    if (wrong > 0) throw new Error(`${wrong} messages were not accepted exactly once`);
    const growth = Number(heaps.at(-1)) - Number(heaps[0]);
    if (growth > MAX_GROWTH_BYTES) throw new Error(`the heap grew by ${growth} bytes`);
    return `each accepted once, through ${JSON.stringify(proxy.counts)}`;
  });
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    bodies: { type: 'string', default: '1000000' },
    sends: { type: 'string', default: '100000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
switch (positionals.join(' ')) {
  case 'build':
    for (const published of PUBLISHED) console.log((await buildPackage(published)).folder);
    console.log(await buildCommandLine());
    break;
  case 'check':
    await checkPackages(values.quick);
    break;
  case 'agree':
    await agree(Number(values.bodies), Number(values.seed));
    break;
  case 'send':
    await sendThroughFaults(Number(values.sends), Number(values.seed));
    break;
  default:
    console.error(USAGE);
    failures = 1;
}
process.exitCode = failures > 0 ? 1 : 0;
