import { globSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Project } from './jest.ts';
import { ROOT } from './program.ts';

/** What `npm test` is asked to run. */
export interface Selection {
  /** Parts of paths, or names of jest projects. */
  patterns: string[];
  /** Only tests whose full name matches this. */
  testName: string | undefined;
  /** Whether nothing is left out. */
  isAll: boolean;
}

/** Paths from the root of the repository. */
export type TestFiles = Partial<Record<Project, string[]>>;

/** Reads `npm test -- [pattern …] [-t name]`; throws on any other option. */
export function readSelection(args: string[]): Selection {
  const options = { testNamePattern: { type: 'string', short: 't' } } as const;
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  return { patterns: positionals, testName: values.testNamePattern, isAll: args.length === 0 };
}

/** Finds the test files that match a pattern, all when there is none; throws when one matches none. */
export function findTests(patterns: readonly string[]): TestFiles {
  const all = globSync('**/*.test.ts', {
    cwd: ROOT,
    exclude: (path) => /(^|\/)(node_modules|\.local)$/.test(path),
  });
  const matching = patterns.map((pattern) => {
    const found = all.filter((path) => path.includes(pattern) || projectOf(path) === pattern);
    if (found.length === 0) throw new Error(`No test file has "${pattern}" in its path.`);
    return found;
  });
  const selected = patterns.length === 0 ? all : [...new Set(matching.flat())];
  return Object.groupBy(selected.sort(), projectOf);
}

function projectOf(path: string): Project {
  if (path.endsWith('.int.test.ts')) return 'integration';
  if (path.startsWith('test/e2e/faults/')) return 'faults';
  return path.startsWith('test/e2e/') ? 'e2e' : 'unit';
}
