import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';

const ROOT = join(import.meta.dirname, '../..');
const versions = z.record(z.string(), z.string()).default({});
const manifestSchema = z.object({
  dependencies: versions,
  devDependencies: versions,
  optionalDependencies: versions,
  overrides: versions,
});

const manifests = [
  'package.json',
  ...globSync('{apps,libs,services}/*/package.json', { cwd: ROOT }),
];
const pinned = manifests.flatMap((path) => {
  const manifest = manifestSchema.parse(JSON.parse(readFileSync(join(ROOT, path), 'utf8')));
  return Object.values(manifest)
    .flatMap((group) => Object.entries(group))
    .filter(([name]) => !name.startsWith('@posthorn/'));
});

const rows = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| `'));

describe('docs/dependencies.md', () => {
  it.each(pinned)('has %s in version %s', (name, version) => {
    const row = rows.find((line) => line.includes(`\`${name}\``) && line.includes(version));
    expect(row).toBeDefined();
  });

  it('has no package that nothing depends on', () => {
    const known = new Set(pinned.map(([name]) => name));
    const listed = rows.flatMap((row) =>
      [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
    );
    expect(listed.filter((name) => !known.has(name))).toEqual([]);
  });
});

describe('package.json [security]', () => {
  it('pins exact versions', () => {
    expect(pinned.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });
});
