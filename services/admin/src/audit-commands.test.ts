import { expect, test } from '@jest/globals';
import { Command } from 'commander';
import { addAuditCommands } from './audit-commands.ts';

test.each([
  ['a day that does not exist', '2026-02-30T00:00:00Z'],
  ['a time without a zone', '2026-02-28T00:00:00'],
  ['a day', '2026-02-28'],
])('%s is refused before anything is read', async (_what, time) => {
  const program = new Command().exitOverride();
  addAuditCommands(program);
  for (const option of ['--since', '--until']) {
    const run = program.parseAsync(['audit-events', 'list', option, time], { from: 'user' });
    await expect(run).rejects.toThrow(`${option} must be an ISO time with a zone`);
  }
});
