import { describe, expect, test } from '@jest/globals';
import { missingMessage, pathOf } from './needed-programs.ts';

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
