import { runUntilStopped } from '../tools/local-stack/waiting.ts';
import { CommandLineError, helpOf, listOf, readCommand } from './command-line.ts';
import { ROUNDS, SHORT } from './rounds.ts';
import { runSuite } from './run-suite.ts';

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

const command = readArguments();
switch (command.kind) {
  case 'help':
    console.log(helpOf(commandLine));
    break;
  case 'list':
    console.log(listOf(commandLine.rounds));
    break;
  case 'run':
    await runUntilStopped((signal) => runSuite(command, signal));
}
