import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { StartupError } from './errors.ts';
import { assertNoPlaintextStores } from './store-settings.ts';

/**
 * Returns the settings of a service from the environment. `NAME_FILE` may be set instead of `NAME` and
 * names a file that holds the value (for mounted secrets). Throws StartupError that lists every wrong
 * setting at once and never shows a value.
 */
export function parseConfig<Schema extends z.ZodObject>(
  service: string,
  schema: Schema,
  env: NodeJS.ProcessEnv,
): z.infer<Schema> {
  const values: Record<string, string | undefined> = {};
  for (const name of Object.keys(schema.shape)) values[name] = readSetting(name, env);
  const result = schema.safeParse(values) as z.ZodSafeParseResult<z.infer<Schema>>;
  if (result.success) {
    assertNoPlaintextStores(result.data, env);
    return result.data;
  }
  const lines = result.error.issues.map(
    (issue) => `  ${issue.path.join('.')}: ${describe(issue, env)}`,
  );
  throw new StartupError(
    [
      `Posthorn ${service} cannot start, these settings are wrong:`,
      ...lines,
      'Settings are environment variables; docs/configuration.md describes each.',
    ].join('\n'),
  );
}

/** An empty variable counts as not set: `PORT= npm start` takes the default. */
function readSetting(name: string, env: NodeJS.ProcessEnv): string | undefined {
  const file = env[`${name}_FILE`];
  if (!file) return env[name] === '' ? undefined : env[name];
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    throw new StartupError(`${name}_FILE names a file that cannot be read; correct the path.`);
  }
}

function describe(issue: z.core.$ZodIssue, env: NodeJS.ProcessEnv): string {
  const isMissing = readSetting(String(issue.path[0]), env) === undefined;
  return isMissing ? 'is required and not set' : issue.message;
}
