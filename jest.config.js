/** Unit tests lie beside their source, integration tests (`.int.test.ts`) and stories need the stack. */
const base = {
  rootDir: import.meta.dirname,
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2024', parser: { syntax: 'typescript' } }, module: { type: 'es6' } },
    ],
  },
};

const UNIT = [
  'libs',
  'services',
  'deploy',
  'tools',
  'bench',
  'test/support',
  'test/simulation',
].map((folder) => `<rootDir>/${folder}/**/*.test.ts`);

export default {
  // Stories wait for conditions, not for the clock; this only ends one that will never come true.
  testTimeout: 90_000,
  projects: [
    {
      ...base,
      displayName: 'unit',
      testMatch: [...UNIT, '<rootDir>/test/*.test.ts'],
      testPathIgnorePatterns: ['/node_modules/', '\\.int\\.test\\.ts$'],
    },
    { ...base, displayName: 'integration', testMatch: ['<rootDir>/**/*.int.test.ts'] },
    { ...base, displayName: 'e2e', testMatch: ['<rootDir>/test/e2e/**/*.test.ts'] },
  ],
};
