import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { securityChecksText } from '../../docs/write-security-checks.ts';

it('docs/security-checks.md is up to date with the last run (node docs/write-security-checks.ts)', () => {
  const written = readFileSync(join(import.meta.dirname, '../../docs/security-checks.md'), 'utf8');
  expect(written).toBe(securityChecksText());
});
