import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isProject, type Project } from './jest.ts';
import { ROOT } from './program.ts';

/** What `npm test` is asked to run. */
export interface Selection {
  /** Parts of paths, names of jest projects, or tags such as `[security]`. */
  patterns: string[];
  /** Only tests whose full name matches this. */
  testName: string | undefined;
  /** Whether nothing is left out. */
  isAll: boolean;
  /** Whether all stores have TLS, logins and ACLs. */
  isSecured: boolean;
}

/** Whose stories run on secured stores; others stop or cut off stores of their own, or measure how long things take. */
const ON_SECURED_STORES = [
  'test/e2e/contract/',
  'test/e2e/contract-after-retries/',
  'test/e2e/retry/',
  'operate/dead-letters',
  'operate/secrets-at-rest',
];

/**
 * These tests ask for messages of days that have none, such as one in the year 15338. The roles of a test server name
 * the collections of a few days; in production they cover the whole database of days.
 */
const ON_PLAIN_STORES_ONLY = [
  'test/e2e/contract/requests/hostile-values.test.ts',
  'test/e2e/contract-after-retries/generated-requests.test.ts',
];

/** Paths from the root of the repository. */
export type TestFiles = Partial<Record<Project, string[]>>;

/** Reads `npm test -- [--secured] [pattern …] [-t name]`; throws on any other option. */
export function readSelection(args: string[]): Selection {
  const options = {
    testNamePattern: { type: 'string', short: 't' },
    secured: { type: 'boolean', default: false },
  } as const;
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  const { testNamePattern: testName, secured: isSecured } = values;
  const patterns = isSecured && positionals.length === 0 ? ON_SECURED_STORES : positionals;
  return { patterns, testName, isAll: args.length === 0, isSecured };
}

/** Returns the tests of a selection, and says which ones secured stores leave out. */
export function selectTests({ patterns, isSecured }: Selection): TestFiles {
  const { e2e = [], ...others } = findTests(patterns);
  const isLeftOut = (file: string): boolean => isSecured && ON_PLAIN_STORES_ONLY.includes(file);
  for (const file of e2e.filter(isLeftOut)) {
    console.log(`NOT RUN on secured stores: ${file} asks for days that their rights do not name`);
  }
  return { ...others, e2e: e2e.filter((file) => !isLeftOut(file)) };
}

/** Returns the test files that match a pattern; all without one. Throws when a pattern matches no file. */
export function findTests(patterns: readonly string[]): TestFiles {
  const all = globSync('**/*.test.ts', {
    cwd: ROOT,
    exclude: (path) => /(^|\/)(node_modules|\.local)$/.test(path),
  });
  const matching = patterns.map((pattern) => {
    const found = all.filter((path) => isMatch(path, pattern));
    if (found.length === 0) throw new Error(`No test file matches "${pattern}".`);
    return found;
  });
  const selected = patterns.length === 0 ? all : [...new Set(matching.flat())];
  return Object.groupBy(selected.sort(), projectOf);
}

/** A tag is a word in brackets in the title of a test; its file is run whole. */
function isMatch(path: string, pattern: string): boolean {
  if (/^\[[a-z-]+\]$/.test(pattern)) {
    return readFileSync(join(ROOT, path), 'utf8').includes(` ${pattern}'`);
  }
  return isProject(pattern) ? projectOf(path) === pattern : path.includes(pattern);
}

/** Whether a test file uses a Posthorn that others use too. */
export function sharesPosthorn(path: string): boolean {
  return /\bjoin(Shared|WithGateway)/.test(readFileSync(join(ROOT, path), 'utf8'));
}

function projectOf(path: string): Project {
  if (path.endsWith('.int.test.ts')) return 'integration';
  if (path.startsWith('test/e2e/faults/')) return 'faults';
  return path.startsWith('test/e2e/') ? 'e2e' : 'unit';
}
