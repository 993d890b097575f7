import { appendFileSync } from 'node:fs';
import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';
import { endFile } from '../support/process/left-running.ts';
import { processorSeconds } from './processor-time.ts';

/**
 * Runs test files in the process of their worker, without a sandbox of their own: sources and packages are loaded once for
 * each worker. A file changes the environment variables and the timers for itself only.
 */
export default class NativeEnvironment {
  global = globalThis;
  moduleMocker = new ModuleMocker(globalThis);
  fakeTimers = null;
  fakeTimersModern;
  #path;
  #before = processorSeconds();
  #variables = { ...process.env };
  #exit = process.exit;
  #getBuiltinModule = process.getBuiltinModule;
  #console = console;

  constructor({ projectConfig }, { testPath }) {
    this.#path = testPath;
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
  }

  async setup() {
    // Jest's loader leads it to itself.
    process.getBuiltinModule = this.#getBuiltinModule;
  }

  async teardown() {
    this.fakeTimersModern.dispose();
    await endFile();
    for (const name of Object.keys(process.env)) {
      if (!(name in this.#variables)) delete process.env[name];
    }
    Object.assign(process.env, this.#variables);
    process.exit = this.#exit;
    globalThis.console = this.#console;
    this.#writeCosts();
  }

  getVmContext() {
    return null;
  }

  exportConditions() {
    return ['node', 'node-addons'];
  }

  /** Writes the processor time of the test file for the report of `npm test`. */
  #writeCosts() {
    const { POSTHORN_TEST_COSTS: file } = process.env;
    if (file === undefined) return;
    const now = processorSeconds();
    const seconds = now.own - this.#before.own + (now.children - this.#before.children);
    appendFileSync(file, `${this.#path}\t${seconds.toFixed(2)}\n`);
  }
}
