import { parseConfig } from '@posthorn/platform/service/config.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import { createLogger, type Logger } from '@posthorn/platform/service/logger.ts';
import type { z } from 'zod';

/** Runs one setup step. Prints its result to standard output; on failure prints one message and sets exit code 1. */
export async function runSetup<Schema extends z.ZodObject>(
  name: string,
  schema: Schema,
  step: (config: z.infer<Schema>, logger: Logger) => Promise<string>,
): Promise<void> {
  try {
    const config = parseConfig(name, schema, process.env);
    console.log(`${name}: ${await step(config, createLogger(name, 'silent'))}`);
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`);
    process.exitCode = 1;
  }
}
