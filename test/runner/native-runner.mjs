import { createRequire, registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import runCircus from 'jest-circus/runner';
import { setGlobals } from './globals.mjs';

const require = createRequire(import.meta.url);
const GLOBALS = import.meta.resolve('./globals.mjs');

// The package itself only says that it must be imported by a test.
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === '@jest/globals' ? { url: GLOBALS, shortCircuit: true } : next(specifier, context),
});

// Generated values differ from version to version, and are the same again in each run of one (test/runner/fuzz-seed.ts).
if (process.env.FUZZ_SEED !== undefined)
  fc.configureGlobal({ seed: Number(process.env.FUZZ_SEED) });

/**
 * Jest's runner, with Node's own loader in place of Jest's: that one loads every source and every package anew for each
 * test file, into a sandbox, which was two thirds of the processor time of the unit tests. Posthorn's tests mock no module,
 * the one thing that needs it.
 */
export default async function run(globalConfig, config, environment, runtime, path, send) {
  Object.assign(runtime, {
    requireInternalModule: requireAnew,
    requireModule: require,
    unstable_shouldLoadAsEsm: () => true,
    unstable_importModule: (file) => import(pathToFileURL(file).href),
    setGlobalsForRuntime: (globals) => {
      setGlobals(globals, environment);
    },
  });
  return runCircus.default(globalConfig, config, environment, runtime, path, send);
}

/** Returns a new instance: the one of Jest's runner keeps the tests of one file. */
function requireAnew(file) {
  delete require.cache[require.resolve(file)];
  return require(file);
}
