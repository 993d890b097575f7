import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const SERVICES = ['gateway', 'dispatcher', 'retry', 'admin'];

/** A service may use the libraries, never another service: each must stay deployable alone. */
function serviceBoundary(service) {
  const others = SERVICES.filter((name) => name !== service).join('|');
  return boundary(
    [`services/${service}/**/*.ts`],
    `^@posthorn/(${others})(/|$)|/services/|(^|/)\\.\\./\\.\\./(\\.\\./)*(${others})/`,
    'Services never import each other; move what both need into libs/platform or libs/domain.',
  );
}

/** TypeScript checks no excess property inside such a spread. */
const PACKED_PROPERTIES = {
  selector: 'ObjectExpression > SpreadElement > ObjectExpression',
  message: 'Write the properties out.',
};

/** A long list of short items stays compact with `// prettier-ignore`. */
const PACKED_ITEMS = [
  'ArrayExpression > SpreadElement > ArrayExpression',
  'ArrayExpression > SpreadElement > TSAsExpression > ArrayExpression',
  'CallExpression > SpreadElement > ArrayExpression',
].map((selector) => ({ selector, message: 'Write the items out.' }));

function boundary(files, regex, message) {
  return {
    files,
    rules: { 'no-restricted-imports': ['error', { patterns: [{ regex, message }] }] },
  };
}

/**
 * The gateway reaches documents only through stores that take the company, so that no query can
 * forget whose data it reads. Comes after the boundary of the services, whose pattern it repeats.
 */
const tenantBoundary = {
  files: ['services/gateway/src/**/*.ts'],
  ignores: ['**/*.test.ts'],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          serviceBoundary('gateway').rules['no-restricted-imports'][1].patterns[0],
          {
            regex: '^@posthorn/platform/mongo/collections',
            message:
              'Use documentsOf(db, name, companyId), or a store whose functions take the company.',
          },
        ],
      },
    ],
    'no-restricted-syntax': [
      'error',
      PACKED_PROPERTIES,
      ...PACKED_ITEMS,
      {
        selector: "CallExpression[callee.property.name='collection']",
        message:
          'Use documentsOf(db, name, companyId), or a store whose functions take the company.',
      },
    ],
  },
};

const USE_CASES = [
  'accept',
  'history',
  'keys',
  'limits',
  'outbox',
  'projects',
  'resend',
  'webhooks',
];

/** Use cases know nothing of HTTP. Comes after the boundary of tenants, whose patterns it repeats. */
const useCaseBoundary = {
  files: USE_CASES.map((folder) => `services/gateway/src/${folder}/**/*.ts`),
  ignores: ['**/*.test.ts'],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          ...tenantBoundary.rules['no-restricted-imports'][1].patterns,
          {
            regex: '^\\.\\./(http|routes|dashboard|openapi|app|gateway|start)(/|\\.ts$)',
            message:
              'A use case does not import HTTP: throw ApiError, and describe the result in routes/.',
          },
        ],
      },
    ],
  },
};

export default tseslint.config(
  {
    ignores: ['**/node_modules', '.local', 'coverage', 'apps/*/dist', 'libs/client/src/schema.ts'],
  },
  { files: ['**/*.{js,mjs}'], ...js.configs.recommended },
  {
    files: ['**/*.{ts,tsx}'],
    // All rules that oxlint has are in .oxlintrc.json: there they take a seventh of the time.
    languageOptions: { parser: tseslint.parser },
    rules: {
      // oxlint refuses a chain below a type assertion too.
      'no-unsafe-optional-chaining': 'error',
      // Room for an object literal whose properties are written out.
      'max-lines-per-function': ['error', { max: 50, skipBlankLines: true, skipComments: true }],
      'no-console': 'error',
    },
  },
  {
    files: ['**/*.{ts,tsx,js,mjs}'],
    rules: {
      'max-lines': ['error', { max: 500, skipBlankLines: true, skipComments: true }],
      'no-restricted-syntax': ['error', PACKED_PROPERTIES, ...PACKED_ITEMS],
    },
  },
  {
    files: ['**/*.test.ts', 'test/**/*.ts'],
    rules: {
      // Tables of cases are packed by what they have in common.
      'no-restricted-syntax': ['error', PACKED_PROPERTIES],
      'max-lines': ['error', { max: 500, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': 'off',
    },
  },
  {
    files: [
      'deploy/**/*',
      'tools/**/*',
      'bench/**/*.ts',
      'faults/**/*.ts',
      'docs/**/*.ts',
      'test/**/*.ts',
      '**/*.mjs',
      '*.config.js',
    ],
    languageOptions: { globals: { process: 'readonly', console: 'readonly', fetch: 'readonly' } },
    rules: { 'no-console': 'off' },
  },
  boundary(
    ['libs/domain/src/**/*.ts'],
    '^(?!zod$|node:crypto$|\\./|\\.\\./|fast-check$|@jest/globals$|standardwebhooks$|@noble/ed25519$)',
    'The domain is pure: nothing but zod, node:crypto and its own files (tests: jest, fast-check).',
  ),
  {
    ...boundary(
      ['libs/verify/src/**/*.ts'],
      '^(?!\\./|node:http$)',
      'The package has no dependencies and runs in browsers and workers: its own files only, and types of node:http.',
    ),
    ignores: ['**/*.test.ts'],
  },
  {
    ...boundary(
      ['libs/client/src/**/*.ts'],
      '^(?!\\./|\\.\\./package\\.json$)',
      'The package has no dependencies and runs in workers too: its own files only.',
    ),
    ignores: ['**/*.test.ts'],
  },
  boundary(
    ['libs/platform/**/*.ts'],
    `^@posthorn/(${SERVICES.join('|')})(/|$)|/services/`,
    'The platform knows no service: services → platform → domain.',
  ),
  boundary(
    ['apps/dashboard/src/**/*.{ts,tsx}'],
    '^node:|^@posthorn/(?!client(/rules)?$)|(^|/)(services|libs|test|tools)/',
    'The dashboard runs in a browser and knows the API only, by the types and rules of @posthorn/client.',
  ),
  boundary(
    ['apps/cli/**/*.ts'],
    '^@posthorn/(?!client(/requests|/rules)?$|verify$)|(^|/)(services|libs|tools)/',
    'The command line is a client: it knows the API by @posthorn/client only.',
  ),
  ...SERVICES.map(serviceBoundary),
  tenantBoundary,
  useCaseBoundary,
);
