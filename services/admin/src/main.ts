import { messageOf } from '@posthorn/platform/service/errors.ts';
import { Command } from 'commander';
import { addAuditCommands } from './audit/audit-commands.ts';
import { addApiKeyCommands } from './companies/api-key-commands.ts';
import { addCompanyCommands } from './companies/company-commands.ts';
import { addSignInLinkCommand } from './companies/sign-in-link-command.ts';
import { addDeadLetterCommands } from './dead-letters/dead-letter-commands.ts';
import { listCommands } from './list-commands.ts';
import { addStatsCommands } from './stats/stats-commands.ts';
import { addSecretCommands } from './secret-commands.ts';
import { addTopicCommands } from './topics/topic-commands.ts';

const program = new Command('admin').description('Administers a Posthorn installation');
addCompanyCommands(program);
addApiKeyCommands(program);
addSignInLinkCommand(program);
addSecretCommands(program);
addDeadLetterCommands(program);
addAuditCommands(program);
addTopicCommands(program);
addStatsCommands(program);
program.addHelpText('after', () => `\nAll commands:\n${listCommands(program)}`);

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}
