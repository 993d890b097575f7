import { createStatsQueries } from '@posthorn/platform/mongo/stats/stats-queries.ts';
import type { Command } from 'commander';
import { z } from 'zod';
import { parseOptions } from '../parse-options.ts';
import { databaseConfig, withDatabase } from '../run-on-database.ts';
import { formatTable } from '../table.ts';
import { lastMinutes, monthOption, sinceOption } from './spans.ts';
import { worstEndpoints } from './worst-endpoints.ts';

/** Adds `worst-endpoints` and `usage` (docs/companies.md). */
export function addStatsCommands(program: Command): void {
  program
    .command('worst-endpoints')
    .description('print the webhooks with the most failed attempts')
    .option('--since <time>', 'how far back, such as 30m or 24h', '1h')
    .option('--limit <count>', 'at most this many', '20')
    .option('--json', 'print JSON')
    .action(printWorstEndpoints);
  program
    .command('usage')
    .description('print what each company used in a month of UTC')
    .requiredOption('--month <month>', 'such as 2026-11')
    .option('--json', 'print JSON')
    .action(printUsage);
}

const worstOptions = z.object({
  since: sinceOption,
  limit: z.coerce.number('must be a number').int('must be a whole number').min(1).max(10_000),
  json: z.boolean().default(false),
});

async function printWorstEndpoints(given: object): Promise<void> {
  const { since, limit, json } = parseOptions(worstOptions, given);
  const endpoints = await withDatabase(databaseConfig, (db) =>
    createStatsQueries(db).readEndpoints(lastMinutes(since, Date.now())),
  );
  print(json, worstEndpoints(endpoints, limit));
}

const usageOptions = z.object({ month: monthOption, json: z.boolean().default(false) });

async function printUsage(given: object): Promise<void> {
  const { month, json } = parseOptions(usageOptions, given);
  const usage = await withDatabase(databaseConfig, (db) => createStatsQueries(db).readUsage(month));
  print(json, usage);
}

type Row = Parameters<typeof formatTable>[0][number];

function print(json: boolean, rows: readonly object[]): void {
  const text = json ? JSON.stringify(rows) : formatTable(rows as readonly Row[]);
  process.stdout.write(`${text}\n`);
}
