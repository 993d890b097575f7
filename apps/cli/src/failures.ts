import {
  ApiError,
  AuthenticationError,
  ConnectionError,
  PermissionError,
  PosthornError,
  TimeoutError,
} from '@posthorn/client';

/** Exit codes. 130 and 141 are what shells report for a process that Ctrl-C, and a closed pipe, ended. */
export const EXIT = {
  ok: 0,
  refused: 1,
  usage: 2,
  unreachable: 3,
  notAllowed: 4,
  checkFailed: 5,
  interrupted: 130,
  outputClosed: 141,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends the command with this exit code. The message is printed on standard error. */
export class CommandFailure extends Error {
  override readonly name: string = 'CommandFailure';
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = EXIT.refused) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Arguments, settings or files are wrong. */
export class UsageFailure extends CommandFailure {
  override readonly name: string = 'UsageFailure';

  constructor(message: string) {
    super(message, EXIT.usage);
  }
}

/** What lies outside of the command line is missing or wrong: a profile, a variable of the environment, or a file with settings. */
export class SettingsFailure extends UsageFailure {}

/** The command ran and found something wrong, such as a difference or a signature that does not match. */
export class CheckFailure extends CommandFailure {
  override readonly name = 'CheckFailure';

  constructor(message: string) {
    super(message, EXIT.checkFailed);
  }
}

/** SIGINT, SIGTERM or SIGHUP came. */
export class Interrupted extends CommandFailure {
  override readonly name = 'Interrupted';

  constructor() {
    super('interrupted', EXIT.interrupted);
  }
}

/** Nobody reads what the command prints any longer. It did not do the rest of its work. */
export class OutputClosed extends CommandFailure {
  override readonly name = 'OutputClosed';

  constructor() {
    super('the output was closed, such as by head: the command ended early', EXIT.outputClosed);
  }
}

/**
 * The exit code of a failure, and the lines for people that describe it. `optionOf` returns the option by which a field of a
 * request was given.
 */
export function describeFailure(
  error: unknown,
  optionOf: (path: string) => string | undefined = () => undefined,
): { exitCode: ExitCode; lines: string[] } {
  if (error instanceof CommandFailure) {
    return { exitCode: error.exitCode, lines: `error: ${error.message}`.split('\n') };
  }
  if (error instanceof ApiError) {
    return { exitCode: exitCodeOf(error), lines: linesOf(error, optionOf) };
  }
  if (error instanceof ConnectionError || error instanceof TimeoutError) {
    return { exitCode: EXIT.unreachable, lines: [`error: ${error.message}`] };
  }
  const message = error instanceof Error ? error.message : String(error);
  // The client refuses arguments so.
  const isUsage = error instanceof TypeError && !(error instanceof PosthornError);
  return { exitCode: isUsage ? EXIT.usage : EXIT.refused, lines: [`error: ${message}`] };
}

function exitCodeOf(error: ApiError): ExitCode {
  const isForbidden = error instanceof AuthenticationError || error instanceof PermissionError;
  return isForbidden ? EXIT.notAllowed : EXIT.refused;
}

function linesOf(
  { message, code, status, requestId, errors = [] }: ApiError,
  optionOf: (path: string) => string | undefined,
): string[] {
  const problems = errors.map(({ path, message: text }) => ({
    // The message is the problem where there is one alone.
    isMessage: `${path}: ${text}` === message,
    shown: `${optionOf(path) ?? path}: ${text}`,
  }));
  const first = problems.find(({ isMessage }) => isMessage)?.shown ?? message;
  return [
    `error: ${first} (${status} ${code})`,
    ...problems.filter(({ isMessage }) => !isMessage).map(({ shown }) => `  ${shown}`),
    ...(requestId === null ? [] : [`  request ${requestId}`]),
  ];
}
