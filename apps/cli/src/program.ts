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
import {
  addDeliveryCommands,
  addReplayCommands,
  addResendCommands,
} from './commands/deliveries.ts';
import { addDoctorCommand } from './commands/doctor.ts';
import { addImportCommands } from './commands/import.ts';
import { addListenCommand } from './commands/listen.ts';
import { addMessageCommands } from './commands/messages.ts';
import { addAppCommands, addProjectCommands } from './commands/objects.ts';
import { addSignatureCommands } from './commands/signature.ts';
import { addStatisticsCommands } from './commands/statistics.ts';
import { addWebhookCommands } from './commands/webhooks.ts';
import { describeFailure, EXIT, type ExitCode } from './failures.ts';
import { Output } from './output.ts';
import { Session, type World } from './session.ts';

/** Runs one command, and returns its exit code. */
export async function run(args: readonly string[], world: World): Promise<ExitCode> {
  const program = createProgram(world);
  try {
    await program.parseAsync(args, { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    // Help and versions end so too. Commander has printed its message.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    const { exitCode, lines } = describeFailure(causeOf(error, world));
    if (exitCode !== EXIT.ok) new Output(world, world.env, {}).error(lines);
    return exitCode;
  }
}

/** The client wraps what its `fetch` throws; the interruption or the end of a dry run is what counts. */
function causeOf(error: unknown, { signal }: World): unknown {
  if (signal.aborted) return signal.reason;
  const { cause } = error as { cause?: unknown };
  return cause instanceof Error && 'exitCode' in cause ? cause : error;
}

const FOR_ALL = `
Every command has --json, --dry-run, --quiet, --verbose, --yes, --profile and --api-url: see posthorn --help`;

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
    .option('--yes', 'delete without a question')
    .helpCommand('help [command]', 'print the help of a command')
    .helpOption('-h, --help', 'print this help')
    // The help of the program has them as its own.
    .addHelpText('afterAll', ({ command }) => (command === program ? '' : FOR_ALL));
  addAccountCommands(program, session);
  addProjectCommands(program, session);
  addAppCommands(program, session);
  addWebhookCommands(program, session);
  addMessageCommands(program, session);
  addListenCommand(program, session);
  addDeliveryCommands(program, session);
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
  addDoctorCommand(program, session);
  addCompletionCommand(program, session);
  inheritSettings(program, world);
  return program;
}

/** The value of an argument that commander does not know is in its message, and may be a key or a secret. */
const withoutValues = (text: string): string =>
  text
    .replace(/(unknown option '--[^'=]*=)[^']*/g, '$1…')
    .replace(/(unknown option '-[^-'])[^']+/g, '$1…')
    .replace(/(but got \d+): .*/g, '$1.')
    .replace(/\b(phk_|whsec_)[\w+/=-]+/g, '$1…');

/** Commands throw in place of ending the process, and print to the streams of the world. */
function inheritSettings(command: Command, world: World): void {
  command.exitOverride();
  command.showSuggestionAfterError();
  command.configureHelp({ showGlobalOptions: false, sortSubcommands: false });
  command.configureOutput({
    writeOut: (text) => world.stdout.write(text),
    writeErr: (text) => world.stderr.write(text),
    outputError: (text, write) => {
      write(withoutValues(text));
    },
    getOutHelpWidth: () => 100,
    getErrHelpWidth: () => 100,
  });
  for (const each of command.commands) inheritSettings(each as Command, world);
}
