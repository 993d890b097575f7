// Runs on Node 20 without packages: installs the packages, finds Node 24, then runs the TypeScript entry of a command.
// Standard output belongs to the command (`npm run admin -- … --json` is parsed), so this file prints to standard error.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { setInterval } from 'node:timers';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const MIN_NODE = 24;

const COMMANDS = {
  start: 'tools/local-stack/start.ts',
  stack: 'tools/local-stack/stack.ts',
  service: 'tools/local-stack/service.ts',
  'dashboard:build': 'tools/dashboard/run.ts',
  demo: 'tools/local-stack/demo.ts',
  admin: 'tools/local-stack/admin.ts',
  bench: 'bench/run.ts',
  faults: 'faults/run.ts',
  capacity: 'tools/capacity/run.ts',
  test: 'test/run.ts',
  check: 'test/check.ts',
  'check:ops': 'tools/check-ops/run.ts',
  packages: 'tools/packages/run.ts',
  simulate: 'test/simulation/run.ts',
  release: 'tools/release/release.ts',
};

function main([command, ...args]) {
  if (!Object.hasOwn(COMMANDS, command ?? '')) {
    fail(`Unknown command "${command ?? ''}". Known: ${Object.keys(COMMANDS).join(', ')}`);
  }
  installPackages();
  runEntry(findNode(), join(ROOT, COMMANDS[command]), args);
}

/** npm writes its own copy of the lock file last, so an interrupted installation counts as not installed. */
function installPackages() {
  const installed = modifiedAt(join(ROOT, 'node_modules/.package-lock.json'));
  const wanted = modifiedAt(join(ROOT, 'package-lock.json'));
  if (installed !== undefined && (wanted === undefined || installed >= wanted)) return;
  const reason = installed === undefined ? 'not installed' : 'older than package-lock.json';
  console.error(`The packages are ${reason}: running npm ci`);
  const { command, args } = npm(['ci', '--loglevel=error']);
  const { status } = spawnSync(command, args, { cwd: ROOT, stdio: ['ignore', 2, 2] });
  if (status !== 0) fail('npm ci failed; see its message above.');
}

function npm(args) {
  const cli = process.env.npm_execpath;
  return cli?.endsWith('.js') === true
    ? { command: process.execPath, args: [cli, ...args] }
    : { command: 'npm', args };
}

function modifiedAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}

function findNode() {
  if (Number(process.versions.node.split('.')[0]) >= MIN_NODE) return process.execPath;
  const packaged = join(ROOT, 'node_modules/.bin/node');
  if (existsSync(packaged)) return packaged;
  return fail(
    `Posthorn needs Node ${MIN_NODE} or later; this is ${process.version}, and npm has no packaged Node for ` +
      `${process.platform} ${process.arch}. Install Node ${MIN_NODE} and run this again.`,
  );
}

function runEntry(node, entry, args) {
  if (!existsSync(entry)) fail(`${entry} is missing in this checkout.`);
  // Node warns that type stripping is experimental.
  const child = spawn(node, ['--disable-warning=ExperimentalWarning', entry, ...args], {
    stdio: 'inherit',
    env: { ...process.env, POSTHORN_PARENT_PID: String(process.pid) },
  });
  forwardSignals(child);
  child.on('error', (error) => fail(`Cannot run ${node}: ${error.message}`));
  child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}

/** On Ctrl-C a terminal signals the child as well, so every entry must ignore a second signal. */
function forwardSignals(child) {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => child.kill(signal));
  }
  if (process.env.npm_lifecycle_event === undefined) return;
  // An npm killed with SIGKILL forwards no signal, and nothing else would stop what it started. The scripts
  // begin with exec, so the parent is npm itself. The parent of npm may exit, as with nohup.
  const npm = process.ppid;
  setInterval(() => process.ppid === npm || child.kill('SIGTERM'), 1_000).unref();
}

function fail(message) {
  console.error(message);
  return process.exit(1);
}

main(process.argv.slice(2));
