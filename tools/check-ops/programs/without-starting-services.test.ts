import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { scratchFolder } from '../../../test/support/process/scratch-folder.ts';
import { withoutStartingServices } from './without-starting-services.ts';

const policyFile = (): string => join(scratchFolder(), 'policy-rc.d');

describe('an installation', () => {
  test('is told to start no service, and the policy is gone afterwards', async () => {
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

  test('keeps the policy of the machine', async () => {
    const file = policyFile();
    writeFileSync(file, 'theirs');
    await withoutStartingServices(() => Promise.resolve(), file);
    expect(readFileSync(file, 'utf8')).toBe('theirs');
  });
});
