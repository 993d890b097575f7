import { messageOf } from '@posthorn/platform/service/errors.ts';
import { Command } from 'commander';
import { addAuditCommands } from './audit-commands.ts';
import { addApiKeyCommands, addCompanyCommands, addSignInLinkCommand } from './company-commands.ts';
import { addDeadLetterCommands } from './dead-letter-commands.ts';
import { addSecretCommands } from './secret-commands.ts';
import { addStatsCommands } from './stats/stats-commands.ts';
import { addTopicCommands } from './topic-commands.ts';

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

/** Column where the descriptions start. */
const DESCRIPTION_COLUMN = 33;

/** Returns one line for each command, after the name of its group if it has one, with its arguments and its description. */
export function listCommands(program: Command): string {
  return program.commands
    .flatMap((each) =>
      each.commands.length === 0
        ? [lineOf('', each)]
        : each.commands.map((command) => lineOf(`${each.name()} `, command)),
    )
    .join('\n');
}

function lineOf(group: string, command: Command): string {
  const usage = ['  ', group, command.name(), ' ', ...argumentsOf(command)].join('');
  return `${usage.padEnd(DESCRIPTION_COLUMN - 1)} ${command.description()}`;
}

function argumentsOf(command: Command): string[] {
  return command.registeredArguments.map((argument) =>
    argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
  );
}
