import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { configurationText } from '../../docs/write-configuration.ts';

const ROOT = join(import.meta.dirname, '../..');
const written = readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8');

/** Set by Posthorn or the system, not by a user. */
const NOT_SETTINGS = new Set(['PATH', 'POSTHORN_PARENT_PID']);

describe('docs/configuration.md', () => {
  it('is up to date with the schemas (node docs/write-configuration.ts)', () => {
    expect(written).toBe(configurationText());
  });

  it('lists every variable that the local stack reads by name', () => {
    const local = written.slice(written.indexOf('## The local stack'));
    const read = localVariables().filter((name) => !NOT_SETTINGS.has(name));
    expect(read).toContain('STACK_DIR');
    expect(read.filter((name) => !local.includes(`\`${name}\``))).toEqual([]);
  });
});

/** Names in `env.NAME` and in `readPort(env, 'NAME')` or `setOr(env, 'NAME')`. */
function localVariables(): string[] {
  const files = globSync('tools/local-stack/**/*.{ts,mjs}', { cwd: ROOT });
  const texts = files.map((file) => readFileSync(join(ROOT, file), 'utf8')).join('\n');
  const reads = texts.matchAll(/\benv(?:\.|, ')([A-Z][A-Z_]+)\b/g);
  return [...new Set([...reads].map(([, name = '']) => name))].sort();
}
