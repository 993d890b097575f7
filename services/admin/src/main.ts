import { messageOf } from '@posthorn/platform/service/errors.ts';
import { Command } from 'commander';
import { addAuditCommands } from './audit-commands.ts';
import {
  addApiKeyCommands,
  addCompanyCommands,
  addSignInLinkCommand,
  addUsageCommand,
} from './company-commands.ts';
import { addDeadLetterCommands } from './dead-letter-commands.ts';
import { addDoctorCommand } from './doctor.ts';
import { addIngestCommands } from './ingest-commands.ts';
import { listCommands } from './output.ts';
import { addSecretCommands } from './secret-commands.ts';
import { addTopicCommands } from './topic-commands.ts';

const program = new Command('admin').description('Administers a Posthorn installation');
addCompanyCommands(program);
addApiKeyCommands(program);
addSignInLinkCommand(program);
addSecretCommands(program);
addDeadLetterCommands(program);
addIngestCommands(program);
addAuditCommands(program);
addTopicCommands(program);
addUsageCommand(program);
addDoctorCommand(program);
program.addHelpText('after', () => `\nAll commands:\n${listCommands(program)}`);

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}
