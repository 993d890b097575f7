import { appendFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { TestEnvironment } from 'jest-environment-node';
import { processorSeconds } from './processor-time.ts';

const vm = createRequire(import.meta.url)('node:vm');

/**
 * Jest's environment for Node, in a context with a plain global object. Jest puts a proxy before it, which every use of
 * `Math` or `Date` in a test or a source runs through: the simulation of endpoints took four times as long.
 */
export default class PlainEnvironment extends TestEnvironment {
  #host;
  #path;
  #before = processorSeconds();

  constructor(...args) {
    const { createContext } = vm;
    vm.createContext = () => createContext(vm.constants.DONT_CONTEXTIFY);
    try {
      super(...args);
    } finally {
      vm.createContext = createContext;
    }
    this.#path = args[1].testPath;
    this.global.loadHost = () => (this.#host ??= import('../support/process/hosted-service.ts'));
  }

  async teardown() {
    await (await this.#host)?.stopHosted();
    await super.teardown();
    this.#writeCosts();
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
