import type { Span } from '@posthorn/domain/stats.ts';
import { createStatsQueries } from '@posthorn/platform/mongo/messages/stats-queries.ts';
import type { Command } from 'commander';
import { z } from 'zod';
import { databaseConfig, parseOptions, withDatabase } from './command.ts';
import { formatTable } from './output.ts';

/** Adds `usage` (docs/companies.md). */
export function addStatsCommands(program: Command): void {
  program
    .command('usage')
    .description('print what each company used in a month of UTC')
    .requiredOption('--month <month>', 'such as 2026-11')
    .option('--json', 'print JSON')
    .action(printUsage);
}

/** A month of UTC as `2026-11`, as the span from its beginning to its end. */
export const monthOption = z
  .string()
  .regex(/^\d{4}-(0[1-9]|1[0-2])$/, 'must be a month such as 2026-11')
  .transform((text): Span => {
    const [year = 0, month = 0] = text.split('-').map(Number);
    return { fromMs: Date.UTC(year, month - 1), toMs: Date.UTC(year, month) };
  });

const usageOptions = z.object({ month: monthOption, json: z.boolean().default(false) });

async function printUsage(given: object): Promise<void> {
  const { month, json } = parseOptions(usageOptions, given);
  const usage = await withDatabase(databaseConfig, (db) => createStatsQueries(db).readUsage(month));
  const text = json ? JSON.stringify(usage) : formatTable(usage);
  process.stdout.write(`${text}\n`);
}
