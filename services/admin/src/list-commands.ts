import type { Command } from 'commander';

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
