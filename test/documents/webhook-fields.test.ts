import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { webhookFieldsText } from '../../docs/write-webhook-fields.ts';

it('docs/webhook-fields.md is up to date with the code (node docs/write-webhook-fields.ts)', () => {
  const written = readFileSync(join(import.meta.dirname, '../../docs/webhook-fields.md'), 'utf8');
  expect(written).toBe(webhookFieldsText());
});
