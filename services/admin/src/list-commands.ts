import type { Command } from 'commander';

/** Column where the descriptions start. */
const DESCRIPTION_COLUMN = 33;

/** Returns one line for each command of each group, with its arguments and its description. */
export function listCommands(program: Command): string {
  return program.commands
    .flatMap((group) => group.commands.map((command) => lineOf(group, command)))
    .join('\n');
}

function lineOf(group: Command, command: Command): string {
  const usage = ['  ', group.name(), ' ', command.name(), ' ', ...argumentsOf(command)].join('');
  return `${usage.padEnd(DESCRIPTION_COLUMN - 1)} ${command.description()}`;
}

function argumentsOf(command: Command): string[] {
  return command.registeredArguments.map((argument) =>
    argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
  );
}
