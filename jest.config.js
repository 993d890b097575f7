/** The folders with sources. The data of a local stack lie in the checkout too and are not searched. */
const FOLDERS = ['apps', 'libs', 'services', 'deploy', 'k8s', 'tools', 'bench', 'faults', 'test'];

const base = {
  rootDir: import.meta.dirname,
  roots: FOLDERS.map((folder) => `<rootDir>/${folder}`),
  testEnvironment: '<rootDir>/test/runner/native-environment.mjs',
  testRunner: '<rootDir>/test/runner/native-runner.mjs',
  moduleFileExtensions: ['ts', 'mjs', 'js'],
  transform: {},
};

/** Unit tests lie beside their source. Integration and end-to-end tests need the stack. */
export default {
  // Tests on the stack wait for conditions, not for the clock; this ends those that never come true.
  testTimeout: 120_000,
  testSequencer: '<rootDir>/test/runner/longest-first.mjs',
  projects: [
    {
      ...base,
      displayName: 'unit',
      testMatch: ['**/*.test.ts'],
      testPathIgnorePatterns: ['/node_modules/', '\\.int\\.test\\.ts$', '<rootDir>/test/e2e/'],
    },
    { ...base, displayName: 'integration', testMatch: ['**/*.int.test.ts'] },
    {
      ...base,
      displayName: 'e2e',
      testMatch: ['<rootDir>/test/e2e/**/*.test.ts'],
      testPathIgnorePatterns: ['<rootDir>/test/e2e/faults/'],
    },
    { ...base, displayName: 'faults', testMatch: ['<rootDir>/test/e2e/faults/**/*.test.ts'] },
  ],
};
