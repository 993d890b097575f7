import type { Command, CommanderError } from '@commander-js/extra-typings';
import { UsageFailure } from './failures.ts';
import { fieldOf } from './options.ts';

/* What is wrong about a command line, in words of this program: with the option or argument, and never with a value. */

/** The words that lead to a command, such as `posthorn webhook get`. */
export function pathOf(command: Command): string {
  const { parent } = command as { parent: Command | null };
  return parent === null ? command.name() : `${pathOf(parent)} ${command.name()}`;
}

/** Returns the failure of a command line that the parser refuses. Commands throw others of the same kind. */
export function usageFailureOf({ code, message }: CommanderError, command: Command): UsageFailure {
  return new UsageFailure(withoutKeys(sentenceOf(code, message, command)));
}

function sentenceOf(code: string, message: string, command: Command): string {
  const [, first = ''] = /'([^']*)'/.exec(message) ?? [];
  const [, suggestion] = /\(Did you mean (?:one of )?(.*)\?\)/.exec(message) ?? [];
  const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`;
  switch (code) {
    case 'commander.unknownOption':
      return `There is no option ${withoutValue(first)}${hint}`;
    case 'commander.unknownCommand':
      return `There is no command ${pathOf(command)} ${first}${hint}`;
    case 'commander.optionMissingArgument':
      return `${longOf(first)} needs a value`;
    case 'commander.missingMandatoryOptionValue':
      return `Set ${longOf(first)}`;
    case 'commander.missingArgument':
      return `<${first}> is missing: ${pathOf(command)} ${argumentsOf(command)}`;
    case 'commander.excessArguments':
      return `${pathOf(command)} takes ${takenBy(command)}${countIn(message)}`;
    case 'commander.invalidArgument':
      return `${placeOf(message)}: ${expectationOf(message)}`;
    default:
      return message.replace(/^error: /, '');
  }
}

/** The value of an option that is not known may be a key or a secret. */
const withoutValue = (flag: string): string =>
  flag.replace(/^(--[^=]*=).*/s, '$1…').replace(/^(-[^-]).+/s, '$1…');

/** An argument in the place of a command may be one too. */
const withoutKeys = (text: string): string => text.replace(/\b(phk_|whsec_)[\w+/=-]+/g, '$1…');

/** `-f, --file <path>` is `--file <path>`. */
const longOf = (flags: string): string => flags.replace(/^-\w, /, '');

const argumentsOf = (command: Command): string =>
  command.registeredArguments
    .map((argument) => (argument.required ? `<${argument.name()}>` : `[${argument.name()}]`))
    .join(' ');

function takenBy(command: Command): string {
  const count = command.registeredArguments.length;
  return count === 0 ? 'no argument' : `${count} argument${count === 1 ? '' : 's'}`;
}

const countIn = (message: string): string => {
  const [, got] = /but got (\d+)/.exec(message) ?? [];
  return got === undefined ? '' : `, and got ${got}`;
};

/** The option or the argument that has the value. */
function placeOf(message: string): string {
  const [, flags] = /^error: option '([^']*)'/.exec(message) ?? [];
  if (flags !== undefined) return longOf(flags).replace(/ .*/, '');
  const [, argument = ''] = / is invalid for argument '([^']*)'/.exec(message) ?? [];
  return `<${argument}>`;
}

/** The value before it may have any text, so that the last such words count. */
function expectationOf(message: string): string {
  const [, expectation = ''] =
    /.*\bis invalid(?: for argument '[^']*')?\. (.*)$/s.exec(message) ?? [];
  const [, choices] = /^Allowed choices are (.*)\.$/.exec(expectation) ?? [];
  const text =
    choices === undefined ? expectation : `expected ${choices.replace(/, ([^,]*)$/, ' or $1')}`;
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`.replace(/\.$/, '');
}

/** What options are called in requests, where that is another word. Fields of objects have their names in a table. */
const NAMES_IN_REQUESTS: Readonly<Record<string, readonly string[]>> = {
  app: ['appId'],
  webhook: ['webhookId'],
  project: ['projectId'],
  target: ['targetId'],
  tag: ['tags'],
  eventType: ['eventTypes'],
  since: ['from'],
  until: ['to'],
};

/** Returns the option that was given for a field of a request, by the name that the API gives to the field. */
export function optionsOf(command: Command): (path: string) => string | undefined {
  const given = command.options.filter(
    (option) => command.getOptionValueSource(option.attributeName()) === 'cli',
  );
  const flags = new Map(
    given.flatMap((option) => {
      const attribute = option.attributeName();
      const names = [
        attribute,
        fieldOf(option) ?? attribute,
        ...(NAMES_IN_REQUESTS[attribute] ?? []),
      ];
      return names.map((name) => [name, option.long ?? option.flags] as const);
    }),
  );
  return (path) => flags.get(path.split(/[.[]/, 1)[0] ?? path);
}
