import { describe, expect, test } from '@jest/globals';
import { ESLint } from 'eslint';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { importCircles, readImports } from './support/sources/import-circles.ts';

const ROOT = join(import.meta.dirname, '..');
const DOMAIN = 'libs/domain/src/ids.ts';
const PLATFORM = 'libs/platform/src/service/errors.ts';
const DISPATCHER = 'services/dispatcher/src/config.ts';
const GATEWAY = 'services/gateway/src/config.ts';
const USE_CASE = 'services/gateway/src/accept/targets.ts';
const RETRY = 'services/retry/src/config.ts';
const VERIFY = 'libs/verify/src/verify.ts';
const CLIENT = 'libs/client/src/transport.ts';

const eslint = new ESLint({ cwd: ROOT });

/** Returns whether lint refuses this import in a file; the path must be that of an existing file. */
async function isRefused(path: string, specifier: string): Promise<boolean> {
  const text = `import '${specifier}';\n`;
  const [result] = await eslint.lintText(text, { filePath: join(ROOT, path) });
  if (!result) throw new Error(`${path} is not linted`);
  if (result.fatalErrorCount > 0) throw new Error(result.messages[0]?.message);
  return result.messages.some(({ ruleId }) => ruleId === 'no-restricted-imports');
}

describe('services → platform → domain', () => {
  test.each([
    [DOMAIN, 'node:fs'],
    [DOMAIN, 'node:crypto/promises'],
    [DOMAIN, 'kafkajs'],
    [DOMAIN, '@posthorn/platform/service/settings/config.ts'],
    [DOMAIN, '@posthorn/gateway/app.ts'],
    [PLATFORM, '@posthorn/gateway/app.ts'],
    [PLATFORM, '@posthorn/retry'],
    [PLATFORM, '../../../services/gateway/src/app.ts'],
    [DISPATCHER, '../../gateway/src/app.ts'],
    [DISPATCHER, '../../retry/src/config.ts'],
    [DISPATCHER, '@posthorn/retry'],
    [GATEWAY, '@posthorn/dispatcher/config.ts'],
    [GATEWAY, '../../../services/retry/src/config.ts'],
    [GATEWAY, '@posthorn/platform/mongo/collections.ts'],
    [USE_CASE, '../http/route.ts'],
    [USE_CASE, '../routes/fields.ts'],
    [USE_CASE, '../gateway.ts'],
    [USE_CASE, '../../../services/retry/src/config.ts'],
    [USE_CASE, '@posthorn/platform/mongo/collections.ts'],
    [RETRY, '@posthorn/gateway/app.ts'],
    [VERIFY, '@posthorn/domain/ids.ts'],
    [VERIFY, 'node:crypto'],
    [CLIENT, '@posthorn/domain/ids.ts'],
    [CLIENT, 'node:crypto'],
  ])('%s may not import %s', async (path, specifier) => {
    expect(await isRefused(path, specifier)).toBe(true);
  });

  test.each([
    [DOMAIN, 'zod'],
    [DOMAIN, 'node:crypto'],
    [DOMAIN, './ids.ts'],
    [PLATFORM, '@posthorn/domain/ids.ts'],
    [PLATFORM, 'kafkajs'],
    [PLATFORM, 'node:fs'],
    [DISPATCHER, '@posthorn/platform/service/settings/config.ts'],
    [DISPATCHER, '@posthorn/domain/ids.ts'],
    [GATEWAY, './http/route.ts'],
    [USE_CASE, '../api-error.ts'],
    [USE_CASE, '../limits/slices.ts'],
    [RETRY, '@posthorn/platform/async/batching/batcher.ts'],
    [VERIFY, './key-set.ts'],
    [CLIENT, './errors.ts'],
  ])('%s may import %s', async (path, specifier) => {
    expect(await isRefused(path, specifier)).toBe(false);
  });
});

/** Found without git, which an unpacked archive does not have. */
const files = globSync('{apps,libs,services,test,bench,deploy,faults,tools,docs,k8s}/**/*.*', {
  cwd: ROOT,
  exclude: (path) => /(^|\/)(node_modules|results|dist)(\/|$)/.test(path),
});

describe('the sources', () => {
  test('are found', () => {
    expect(files).toEqual(expect.arrayContaining([DOMAIN, PLATFORM, DISPATCHER]));
  });

  test('have no file and no folder with a name that says nothing about its content', () => {
    const vague = /(^|\/)(utils?|helpers?|common|types|shared|misc)(\/|\.[a-z]+$)/;
    expect(files.filter((path) => vague.test(path))).toEqual([]);
  });

  test('have no circle of imports between the entries of a folder', () => {
    const sources = files.filter((path) => /\.tsx?$/.test(path) && !path.includes('.test.'));
    const imports = readImports(ROOT, sources);
    expect(imports.length).toBeGreaterThan(1_000);
    expect(importCircles(imports)).toEqual([]);
  });
});
