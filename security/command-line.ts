import { parseArgs } from 'node:util';
import { AREAS } from './areas.ts';
import type { Check } from './check.ts';
import { WAYS_IN } from './ways-in.ts';

export type Command =
  | { kind: 'help' }
  | { kind: 'list' }
  | { kind: 'run'; checks: readonly Check[]; jsonPath: string | undefined; isWhole: boolean };

/** Throws an Error that names what is wrong. */
export function readCommand(args: string[], all: readonly Check[]): Command {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      json: { type: 'string' },
      list: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return { kind: 'help' };
  if (values.list) return { kind: 'list' };
  const checks = positionals.length === 0 ? all : positionals.map((id) => checkOf(all, id));
  return { kind: 'run', checks, jsonPath: values.json, isWhole: positionals.length === 0 };
}

function checkOf(all: readonly Check[], id: string): Check {
  const found = all.find((check) => check.id === id.toUpperCase());
  if (!found)
    throw new Error(`There is no check "${id}". Those that exist: npm run security -- --list`);
  return found;
}

export const HELP = `npm run security -- [CHECK …] [--json FILE]

Tries what an attacker would try, against running services on a stack of its own (STACK=native), and prints a
table: what was tried, what must hold, what came of it. It needs 10 to 20 minutes on two cores, at most 70. The exit
code is 1 when a check is not good. All checks together are written to security/results.

CHECK    S1 … S${AREAS.length}, R1 … R${WAYS_IN.length}; all of them without one
--json   also writes the report into this file
--list   shows the checks and the tests of each`;

export function listOf(checks: readonly Check[]): string {
  const text = ({ id, tried, holds, tests }: Check): string =>
    `${id}: ${tried}\n  holds: ${holds}\n  tests: ${tests.join(', ')}`;
  return checks.map(text).join('\n');
}
