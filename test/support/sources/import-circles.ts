import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** A file that imports another one; both are paths from the root. */
export interface Import {
  from: string;
  to: string;
}

const PACKAGES = new Map([
  ['@posthorn/platform/', 'libs/platform/src/'],
  ['@posthorn/domain/', 'libs/domain/src/'],
]);

/** Returns the imports of files of the repository, also those of types alone. */
export function readImports(root: string, files: readonly string[]): Import[] {
  return files.flatMap((from) => {
    const text = readFileSync(join(root, from), 'utf8');
    const specifiers = [...text.matchAll(/(?:from|import|import\()\s*'([^']+)'/g)];
    return specifiers.flatMap(([, specifier = '']) => {
      const to = pathOf(from, specifier);
      return to === null || to === from ? [] : [{ from, to }];
    });
  });
}

function pathOf(from: string, specifier: string): string | null {
  if (specifier.startsWith('.')) return normalize(join(dirname(from), specifier));
  for (const [name, folder] of PACKAGES) {
    if (specifier.startsWith(name)) return folder + specifier.slice(name.length);
  }
  return null;
}

/** Returns the imports between entries of one folder that are part of a circle of these entries. */
export function importCircles(imports: readonly Import[]): string[] {
  const folders = new Set(imports.flatMap(({ from }) => parentsOf(from)));
  return [...folders].sort().flatMap((folder) => circlesIn(folder, imports));
}

function circlesIn(folder: string, imports: readonly Import[]): string[] {
  const between = imports
    .map(({ from, to }) => ({ from, to, entries: [entryOf(folder, from), entryOf(folder, to)] }))
    .filter(({ entries: [a, b] }) => a !== null && b !== null && a !== b);
  const graph = Map.groupBy(between, ({ entries: [a] }) => String(a));
  const reaches = (start: string, end: string): boolean => {
    const seen = new Set<string>();
    const open = [start];
    for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
      if (entry === end) return true;
      if (seen.has(entry)) continue;
      seen.add(entry);
      open.push(...(graph.get(entry) ?? []).map(({ entries: [, b] }) => String(b)));
    }
    return false;
  };
  return between
    .filter(({ entries: [a, b] }) => reaches(String(b), String(a)))
    .map(({ from, to }) => `${folder}: ${from} imports ${to}`);
}

/** Returns the file or folder directly in `folder` that a path leads through; null for paths elsewhere. */
function entryOf(folder: string, path: string): string | null {
  if (!path.startsWith(`${folder}/`)) return null;
  const [entry = ''] = path.slice(folder.length + 1).split('/');
  return entry;
}

function parentsOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}
