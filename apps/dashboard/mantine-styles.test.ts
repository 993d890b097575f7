import { expect, test } from '@jest/globals';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';

const SOURCES = join(import.meta.dirname, 'src');
const CORE = dirname(createRequire(import.meta.url).resolve('@mantine/core/styles.css'));
/** Not of one component: what every page needs. */
const COMMON = ['baseline', 'default-css-variables', 'global'];

const read = (path: string): string => readFileSync(path, 'utf8');

/** The components that the dashboard imports by name. */
function usedComponents(): string[] {
  const texts = globSync('**/*.tsx', { cwd: SOURCES }).map((path) => read(join(SOURCES, path)));
  const lists = texts.flatMap((text) => [
    ...text.matchAll(/import \{([^}]*)\} from '@mantine\/core'/g),
  ]);
  return lists.flatMap(([, names = '']) => names.match(/\b[A-Z]\w+/g) ?? []);
}

/** The names of the style sheets of these components, and of the components that they are made of. */
function styleSheetsOf(components: readonly string[]): Set<string> {
  const sheets = new Set<string>();
  const seen = new Set<string>();
  const follow = (path: string): void => {
    if (seen.has(path) || !existsSync(path)) return;
    seen.add(path);
    const [, sheet] = /(\w+)\.module\.mjs$/.exec(path) ?? [];
    if (sheet !== undefined) sheets.add(sheet);
    for (const [, next = ''] of read(path).matchAll(/from "(\.[^"]+)"/g)) {
      follow(resolve(dirname(path), next));
    }
  };
  for (const name of components) follow(join(CORE, 'esm', 'components', name, `${name}.mjs`));
  return sheets;
}

test('every component has its style sheet, and there is none that no component needs', () => {
  const imported = read(join(SOURCES, 'theme', 'mantine-styles.ts'));
  const given = [...imported.matchAll(/styles\/([\w-]+)\.layer\.css/g)].map(([, name]) => name);
  const needed = styleSheetsOf(usedComponents());
  expect(needed).toContain('Button');
  expect(given.toSorted()).toEqual([...COMMON, ...needed].toSorted());
});
