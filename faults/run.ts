import { messageOf } from '../tools/local-stack/stack-error.ts';
import { waitForStopRequest } from '../tools/local-stack/supervisor/stop-request.ts';
import { type Command, CommandLineError, helpOf, listOf, readCommand } from './command-line.ts';
import { ROUNDS, SHORT } from './rounds.ts';
import { runSuite } from './run-suite.ts';

/** The exit code that a shell reports for a program ended by SIGINT: 128 + 2. */
const INTERRUPTED = 130;
const args = process.argv.slice(2);
const commandLine = { rounds: ROUNDS, short: SHORT };

function readArguments(): ReturnType<typeof readCommand> {
  try {
    return readCommand(args, commandLine);
  } catch (error) {
    if (!(error instanceof CommandLineError)) throw error;
    console.error(`${error.message}\n\n${helpOf(commandLine)}`);
    return process.exit(1);
  }
}

async function run(command: Command): Promise<number> {
  const interruption = new AbortController();
  void waitForStopRequest().then((reason) => {
    console.log(`\nStopping (${reason}) …`);
    interruption.abort();
  });
  try {
    const isSound = await runSuite(command, interruption.signal);
    if (interruption.signal.aborted) return INTERRUPTED;
    return isSound ? 0 : 1;
  } catch (error) {
    if (interruption.signal.aborted) return INTERRUPTED;
    console.error(messageOf(error));
    return 1;
  }
}

const command = readArguments();
switch (command.kind) {
  case 'help':
    console.log(helpOf(commandLine));
    break;
  case 'list':
    console.log(listOf(commandLine.rounds));
    break;
  case 'run':
    process.exit(await run(command));
}
