import { copyFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  ensurePrograms,
  type NeededProgram,
} from '../../../tools/check-ops/programs/ensure-programs.ts';
import { ROOT, runProgram } from '../../../tools/check-ops/programs/run-program.ts';
import { cachedFolder } from '../../../tools/local-stack/machine/cache.ts';

/** Returns the names of the operations that the program called, one a line. Throws its output when a call was wrong. */
type RunCalls = (env: Record<string, string>) => Promise<string[]>;

const OPENAPI_TS = '0.99.0';
const OPENAPI_PYTHON_CLIENT = '0.29.1';
/** As in the packages of the services, so that no other version is downloaded. */
const BESIDE_OPENAPI_TS = ['typescript@6.0.3', 'zod@4.6.7'];

const PYTHON: readonly NeededProgram[] = [
  { name: 'python3', aptPackage: 'python3' },
  { name: 'pip3', aptPackage: 'python3-pip' },
];

/** Downloads take seconds, on a busy machine with a slow network minutes. */
const TIMEOUT_MS = 480_000;
const RUN = { timeoutMs: TIMEOUT_MS };

/** Generates a TypeScript client that checks requests and answers with zod, and checks the types of its program. */
export async function typescriptClient(document: string, folder: string): Promise<RunCalls> {
  const packages = await cachedFolder(`openapi-ts-${OPENAPI_TS}`, async (prefix) => {
    const quietly = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
    const wanted = [`@hey-api/openapi-ts@${OPENAPI_TS}`, ...BESIDE_OPENAPI_TS];
    await runProgram('npm', ['install', '--prefix', prefix, ...quietly, ...wanted], {
      ...RUN,
      cwd: prefix,
    });
  });
  symlinkSync(join(packages, 'node_modules'), join(folder, 'node_modules'));
  const config = {
    input: document,
    output: { path: join(folder, 'client'), importFileExtension: '.ts' },
    plugins: [
      '@hey-api/client-fetch',
      '@hey-api/typescript',
      'zod',
      { name: '@hey-api/sdk', validator: true },
    ],
  };
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(
    join(folder, 'openapi-ts.config.mjs'),
    `export default ${JSON.stringify(config)};\n`,
  );
  const inFolder = { ...RUN, cwd: folder };
  const generate = join(packages, 'node_modules/@hey-api/openapi-ts/bin/run.js');
  await runProgram(process.execPath, [generate], inFolder);
  copyFileSync(join(import.meta.dirname, 'calls.ts.txt'), join(folder, 'calls.ts'));
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig()));
  const check = join(ROOT, 'node_modules/typescript/bin/tsc');
  await runProgram(process.execPath, [check, '-p', folder], inFolder);
  return async (env) =>
    linesOf(await runProgram(process.execPath, ['calls.ts'], { ...inFolder, env }));
}

/** As strict as the code of the services but for one option, with the types of a browser: the generated client needs both. */
function tsconfig(): object {
  const types = { lib: ['es2024', 'dom', 'dom.iterable'], types: ['node'] };
  const strictness = { exactOptionalPropertyTypes: false };
  return {
    extends: join(ROOT, 'tsconfig.base.json'),
    include: ['calls.ts'],
    compilerOptions: { ...types, ...strictness, typeRoots: [join(ROOT, 'node_modules/@types')] },
  };
}

/** Generates a Python client, whose answers are classes. Names are in snake_case. */
export async function pythonClient(document: string, folder: string): Promise<RunCalls> {
  await ensurePrograms(PYTHON, console.log);
  // Some packages have parts that are compiled for one version of Python.
  const version = 'import sys; print(sys.implementation.cache_tag)';
  const tag = (await runProgram('python3', ['-c', version])).trim();
  const name = `openapi-python-client-${OPENAPI_PYTHON_CLIENT}-${tag}`;
  const packages = await cachedFolder(name, async (target) => {
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-compile'];
    const wanted = `openapi-python-client==${OPENAPI_PYTHON_CLIENT}`;
    await runProgram('python3', [...pip, '--target', target, wanted], RUN);
  });
  const config = join(folder, 'config.yaml');
  // By default the generator formats its files with a program that takes longer than the rest.
  writeFileSync(config, 'post_hooks: []\n');
  const env = { PYTHONPATH: `${packages}:${folder}`, PYTHONDONTWRITEBYTECODE: '1' };
  const places = ['--path', document, '--output-path', join(folder, 'client')];
  const args = ['-m', 'openapi_python_client', 'generate', ...places, '--meta', 'none'];
  await runProgram('python3', [...args, '--config', config, '--fail-on-warning'], { ...RUN, env });
  const program = join(import.meta.dirname, 'calls.py');
  return async (given) =>
    linesOf(await runProgram('python3', [program], { ...RUN, env: { ...env, ...given } }));
}

function linesOf(output: string): string[] {
  return output.trim().split('\n');
}
