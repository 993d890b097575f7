import { messageOf } from '../tools/local-stack/stack-error.ts';
import { waitForStopRequest } from '../tools/local-stack/supervisor/stop-request.ts';
import { type Command, CommandLineError, helpOf, readCommand } from './command-line.ts';
import { runScenario } from './run-scenario.ts';
import { SCENARIOS } from './scenarios.ts';

/** The exit code that a shell reports for a program ended by SIGINT: 128 + 2. */
const INTERRUPTED = 130;

function readArguments(): Command | null {
  try {
    return readCommand(process.argv.slice(2), SCENARIOS);
  } catch (error) {
    if (!(error instanceof CommandLineError)) throw error;
    console.error(`${error.message}\n\n${helpOf(SCENARIOS)}`);
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
    const isComplete = await runScenario(command, interruption.signal);
    if (interruption.signal.aborted) return INTERRUPTED;
    return isComplete ? 0 : 1;
  } catch (error) {
    if (interruption.signal.aborted) return INTERRUPTED;
    console.error(messageOf(error));
    return 1;
  }
}

const command = readArguments();
if (command === null) console.log(helpOf(SCENARIOS));
else process.exit(await run(command));
