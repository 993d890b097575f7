import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { reliabilityText } from '../../docs/write-reliability.ts';

it('docs/reliability.md is up to date with the results of the fault rounds (node docs/write-reliability.ts)', () => {
  const written = readFileSync(join(import.meta.dirname, '../../docs/reliability.md'), 'utf8');
  expect(written).toBe(reliabilityText());
});
