import { beforeAll, describe, expect, test } from '@jest/globals';
import { ESLint } from 'eslint';
import { globSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const DOMAIN = 'libs/domain/src/ids.ts';
const PLATFORM = 'libs/platform/src/service/errors.ts';
const DISPATCHER = 'services/dispatcher/src/config.ts';
const GATEWAY = 'services/gateway/src/config.ts';
const RETRY = 'services/retry/src/config.ts';

const eslint = new ESLint({ cwd: ROOT });

/** Whether a file may hold this import; the path is that of an existing file, the text is not. */
async function isRefused(path: string, specifier: string): Promise<boolean> {
  const text = `import '${specifier}';\n`;
  const [result] = await eslint.lintText(text, { filePath: join(ROOT, path) });
  if (!result) throw new Error(`${path} is not linted`);
  if (result.fatalErrorCount > 0) throw new Error(result.messages[0]?.message);
  return result.messages.some(({ ruleId }) => ruleId === 'no-restricted-imports');
}

describe('services → platform → domain', () => {
  // The first file makes the linter read the whole project.
  beforeAll(() => isRefused(DOMAIN, 'zod'), 60_000);

  test.each([
    [DOMAIN, 'node:fs'],
    [DOMAIN, 'node:crypto/promises'],
    [DOMAIN, 'kafkajs'],
    [DOMAIN, '@posthorn/platform/service/config.ts'],
    [DOMAIN, '@posthorn/gateway/app.ts'],
    [PLATFORM, '@posthorn/gateway/app.ts'],
    [PLATFORM, '@posthorn/retry'],
    [PLATFORM, '../../../services/gateway/src/app.ts'],
    [DISPATCHER, '../../gateway/src/app.ts'],
    [DISPATCHER, '../../retry/src/config.ts'],
    [DISPATCHER, '@posthorn/retry'],
    [GATEWAY, '@posthorn/dispatcher/config.ts'],
    [GATEWAY, '../../../services/retry/src/config.ts'],
    [RETRY, '@posthorn/gateway/app.ts'],
  ])('%s may not import %s', async (path, specifier) => {
    expect(await isRefused(path, specifier)).toBe(true);
  });

  test.each([
    [DOMAIN, 'zod'],
    [DOMAIN, 'node:crypto'],
    [DOMAIN, './base32.ts'],
    [PLATFORM, '@posthorn/domain/ids.ts'],
    [PLATFORM, 'kafkajs'],
    [PLATFORM, 'node:fs'],
    [DISPATCHER, '@posthorn/platform/service/config.ts'],
    [DISPATCHER, '@posthorn/domain/ids.ts'],
    [GATEWAY, './http/route.ts'],
    [RETRY, '@posthorn/platform/async/batcher.ts'],
  ])('%s may import %s', async (path, specifier) => {
    expect(await isRefused(path, specifier)).toBe(false);
  });
});

/** Found without git: an unpacked archive has none. */
const files = globSync('{libs,services,test,bench,deploy,tools,docs,k8s}/**/*.*', {
  cwd: ROOT,
  exclude: (path) => /(^|\/)(node_modules|results)(\/|$)/.test(path),
});

describe('the sources', () => {
  test('are found', () => {
    expect(files).toEqual(expect.arrayContaining([DOMAIN, PLATFORM, DISPATCHER]));
  });

  test('lie in no folder and no file whose name says nothing of what is in it', () => {
    const vague = /(^|\/)(utils?|helpers?|common|types|shared|misc)(\/|\.[a-z]+$)/;
    expect(files.filter((path) => vague.test(path))).toEqual([]);
  });
});
