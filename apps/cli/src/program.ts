import { Command, CommanderError } from '@commander-js/extra-typings';
import manifest from '../package.json' with { type: 'json' };
import { addAccountCommands } from './commands/account.ts';
import { addApplyCommands } from './commands/apply.ts';
import { addCompletionCommand } from './commands/completion.ts';
import {
  addApiKeyCommands,
  addAuditCommands,
  addPortalCommands,
  addSigningKeyCommands,
} from './commands/company.ts';
import { addCancellationCommands } from './commands/deliveries-by-filter.ts';
import {
  addDeliveryCommands,
  addReplayCommands,
  addResendCommands,
} from './commands/deliveries.ts';
import { addDoctorCommand } from './commands/doctor.ts';
import { addEventTypeCommands } from './commands/event-types.ts';
import { addImportCommands } from './commands/import.ts';
import { addApiCommand, addOpenCommand } from './commands/installation.ts';
import { addListenCommand } from './commands/listen.ts';
import { addMessageCommands } from './commands/messages.ts';
import { addAppCommands, addProjectCommands } from './commands/objects.ts';
import { addSignatureCommands } from './commands/signature.ts';
import { addStatisticsCommands } from './commands/statistics.ts';
import { addWebhookCommands } from './commands/webhooks.ts';
import { describeFailure, EXIT, type ExitCode, SettingsFailure, UsageFailure } from './failures.ts';
import { Output } from './output.ts';
import { useProxies } from './proxies.ts';
import { Session, type World } from './session.ts';
import { optionsOf, pathOf, usageFailureOf } from './usage.ts';

/** Runs one command, and returns its exit code. */
export async function run(args: readonly string[], world: World): Promise<ExitCode> {
  const program = createProgram(world);
  let command: Command = program;
  program.hook('preAction', (_, chosen) => {
    refuseEmpty(chosen as Command);
  });
  eachOf(program, (each) => {
    each.hook('preSubcommand', (_, next) => {
      command = next as Command;
    });
  });
  let endProxies = (): void => undefined;
  try {
    endProxies = useProxies(world.env);
    await program.parseAsync(args, { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    // Help and versions end so too, and are printed.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    const cause = causeOf(error, world);
    const { exitCode, lines } = describeFailure(cause, optionsOf(command));
    const isUsage = exitCode === EXIT.usage && !(cause instanceof SettingsFailure);
    // `help` is about others.
    const about = command.name() === 'help' ? program : command;
    if (isUsage) lines.push(`see ${pathOf(about)} --help`);
    if (exitCode !== EXIT.ok) new Output(world, world.env, {}).error(lines);
    return exitCode;
  } finally {
    endProxies();
  }
}

/** As a variable that is not set makes it: an empty id would be the address of something else. */
function refuseEmpty({ args, registeredArguments }: Command): void {
  const empty = registeredArguments.find((_, index) => args[index] === '');
  if (empty) throw new UsageFailure(`<${empty.name()}> must not be empty`);
}

/** The client wraps what its `fetch` throws; the interruption or the end of a dry run is what counts. */
function causeOf(error: unknown, { signal }: World): unknown {
  if (signal.aborted) return signal.reason;
  const { cause } = error as { cause?: unknown };
  return cause instanceof Error && 'exitCode' in cause ? cause : error;
}

const HELP_OF_COMMAND = 'print the help of a command';

const FOR_ALL = `
Every command has --json, --dry-run, --quiet, --verbose, --yes, --profile and --api-url: see posthorn --help.
Times are such as 2026-01-31T09:30:00Z. A time or a day without a zone is of UTC.`;

/** The whole grammar. Nothing is read or written before a command runs. */
export function createProgram(world: World): Command {
  const program = new Command('posthorn');
  const session = new Session(world, () => program.opts());
  program
    .description('Sends webhooks with Posthorn, and sees what became of them')
    .version(manifest.version, '-V, --version', 'print the version')
    .option('--api-url <url>', 'address of the gateway (POSTHORN_URL)')
    .option('--profile <name>', 'profile to use (POSTHORN_PROFILE)')
    .option('--json', 'print the data of the API as JSON')
    .option('--quiet', 'print results only')
    .option('--verbose', 'print each request and its time')
    .option('--dry-run', 'print the request that would change something, and do not make it')
    .option('--yes', 'do not ask before something is deleted, cancelled, erased or applied')
    // Of commands with subcommands. That of the program is below, and takes more than one word.
    .helpCommand('help [command]', HELP_OF_COMMAND)
    .helpOption('-h, --help', 'print this help')
    // The help of the program has them as its own.
    .addHelpText('afterAll', ({ command }) => (command === program ? '' : FOR_ALL));
  addAccountCommands(program, session);
  addProjectCommands(program, session);
  addAppCommands(program, session);
  addEventTypeCommands(program, session);
  addWebhookCommands(program, session);
  addMessageCommands(program, session);
  addListenCommand(program, session);
  addDeliveryCommands(program, session);
  addCancellationCommands(program, session);
  addResendCommands(program, session);
  addReplayCommands(program, session);
  addSignatureCommands(program, session);
  addApplyCommands(program, session);
  addImportCommands(program, session);
  addApiKeyCommands(program, session);
  addSigningKeyCommands(program, session);
  addPortalCommands(program, session);
  addStatisticsCommands(program, session);
  addAuditCommands(program, session);
  addOpenCommand(program, session);
  addApiCommand(program, session);
  addDoctorCommand(program, session);
  addCompletionCommand(program, session);
  addHelpCommand(program);
  eachOf(program, (command) => {
    inheritSettings(command, world);
  });
  return program;
}

function addHelpCommand(program: Command): void {
  program
    .helpCommand(false)
    .command('help')
    .argument('[command...]', 'its words, such as webhook get')
    .description(HELP_OF_COMMAND)
    .action((words) => {
      let command = program;
      for (const word of words) {
        const next = command.commands.find((each) => each.name() === word);
        if (!next) throw new UsageFailure(`There is no command ${pathOf(command)} ${word}`);
        command = next as Command;
      }
      command.outputHelp();
    });
}

function eachOf(command: Command, visit: (command: Command) => void): void {
  visit(command);
  for (const each of command.commands) eachOf(each as Command, visit);
}

/** Commands throw in place of ending the process, and print to the streams of the world. */
function inheritSettings(command: Command, world: World): void {
  command.exitOverride((error) => {
    // Without a subcommand, the help is printed.
    const isHelp = error.exitCode === 0 || error.code === 'commander.help';
    throw isHelp ? error : usageFailureOf(error, command);
  });
  command.showSuggestionAfterError();
  command.configureHelp({ showGlobalOptions: false, sortSubcommands: false });
  command.configureOutput({
    writeOut: (text) => world.stdout.write(text),
    writeErr: (text) => world.stderr.write(text),
    // `run` prints what is wrong.
    outputError: () => undefined,
    getOutHelpWidth: () => 100,
    getErrHelpWidth: () => 100,
  });
}
