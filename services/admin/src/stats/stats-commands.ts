import { createStatsQueries } from '@posthorn/platform/mongo/messages/stats-queries.ts';
import type { Command } from 'commander';
import { z } from 'zod';
import { databaseConfig, parseOptions, withDatabase } from '../command.ts';
import { formatTable } from '../output.ts';
import { monthOption } from './spans.ts';

/** Adds `usage` (docs/companies.md). */
export function addStatsCommands(program: Command): void {
  program
    .command('usage')
    .description('print what each company used in a month of UTC')
    .requiredOption('--month <month>', 'such as 2026-11')
    .option('--json', 'print JSON')
    .action(printUsage);
}

const usageOptions = z.object({ month: monthOption, json: z.boolean().default(false) });

async function printUsage(given: object): Promise<void> {
  const { month, json } = parseOptions(usageOptions, given);
  const usage = await withDatabase(databaseConfig, (db) => createStatsQueries(db).readUsage(month));
  const text = json ? JSON.stringify(usage) : formatTable(usage);
  process.stdout.write(`${text}\n`);
}
