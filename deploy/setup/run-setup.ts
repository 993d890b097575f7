import { parseConfig } from '@posthorn/platform/service/config.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import { createLogger, type Logger } from '@posthorn/platform/service/logger.ts';
import type { z } from 'zod';

/** A step that makes the stores ready for the services. Repeating it changes nothing. */
export interface SetupStep<Schema extends z.ZodObject> {
  name: string;
  settings: Schema;
  /** Returns a description of its changes. */
  run: (values: z.infer<Schema>, logger: Logger) => Promise<string>;
}

/** Runs a step with the settings in `env`. Returns the description of its changes; throws for wrong settings. */
export function takeStep<Schema extends z.ZodObject>(
  { name, settings, run }: SetupStep<Schema>,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  return run(parseConfig(name, settings, env), createLogger(name, 'silent'));
}

/** Runs a step as a program. Prints its result to standard output; on failure prints one message and sets exit code 1. */
export async function runSetup<Schema extends z.ZodObject>(step: SetupStep<Schema>): Promise<void> {
  try {
    console.log(`${step.name}: ${await takeStep(step, process.env)}`);
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`);
    process.exitCode = 1;
  }
}
