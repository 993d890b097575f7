import { createRequire } from 'node:module';
import { TestEnvironment } from 'jest-environment-node';

const vm = createRequire(import.meta.url)('node:vm');

/**
 * Jest's environment for Node, in a context with a plain global object. Jest puts a proxy before it, which every use of
 * `Math` or `Date` in a test or a source runs through: the simulation of endpoints took four times as long.
 */
export default class PlainEnvironment extends TestEnvironment {
  constructor(...args) {
    const { createContext } = vm;
    vm.createContext = () => createContext(vm.constants.DONT_CONTEXTIFY);
    try {
      super(...args);
    } finally {
      vm.createContext = createContext;
    }
  }
}
