import { parseArgs } from 'node:util';
import type { OpsCheck } from './ops-check.ts';

/** Reads `npm run check:ops -- [--quick] [name …]`. Throws on an unknown option or name. */
export function selectChecks(args: string[], all: readonly OpsCheck[]): OpsCheck[] {
  const options = { quick: { type: 'boolean', default: false } } as const;
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  const known = all.map(({ name }) => name);
  const unknown = positionals.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new Error(`There is no check ${unknown.join(', ')}. Known: ${known.join(', ')}`);
  }
  return all.filter(
    ({ name, isQuick }) =>
      (positionals.length === 0 || positionals.includes(name)) && (isQuick || !values.quick),
  );
}
