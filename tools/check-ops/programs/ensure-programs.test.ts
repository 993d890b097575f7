import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { missingMessage, pathOf, withoutStartingServices } from './ensure-programs.ts';
import { scratchFolder } from '../../../test/support/process/scratch-folder.ts';

const promtool = { name: 'promtool', aptPackage: 'prometheus' };
const prometheus = { name: 'prometheus', aptPackage: 'prometheus' };

describe('a needed program', () => {
  test('is found in PATH', () => {
    expect(pathOf({ name: 'node', aptPackage: 'nodejs' })).toMatch(/node$/);
    expect(pathOf({ name: 'no-such-program', aptPackage: 'none' })).toBeUndefined();
  });

  test('that is missing is named with the command that installs it, each package once', () => {
    const message = missingMessage([promtool, prometheus]);
    expect(message).toContain('Missing: promtool, prometheus.');
    expect(message).toMatch(/apt-get install --no-install-recommends prometheus$/);
  });
});

const policyFile = (): string => join(scratchFolder(), 'policy-rc.d');

describe('an installation', () => {
  test('starts no service, and removes the policy afterwards', async () => {
    const file = policyFile();
    const status = await withoutStartingServices(
      () => Promise.resolve(spawnSync(file).status),
      file,
    );
    expect(status).toBe(101);
    expect(existsSync(file)).toBe(false);
  });

  test('leaves no policy behind when it fails', async () => {
    const file = policyFile();
    const failing = withoutStartingServices(() => Promise.reject(new Error('no space')), file);
    await expect(failing).rejects.toThrow('no space');
    expect(existsSync(file)).toBe(false);
  });

  test('does not replace the policy of the machine', async () => {
    const file = policyFile();
    writeFileSync(file, 'theirs');
    await withoutStartingServices(() => Promise.resolve(), file);
    expect(readFileSync(file, 'utf8')).toBe('theirs');
  });
});
