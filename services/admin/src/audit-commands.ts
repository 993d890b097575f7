import { type AuditEvent, NO_COMPANY } from '@posthorn/domain/audit.ts';
import { createAuditStore } from '@posthorn/platform/mongo/companies/audit-log.ts';
import type { Command } from 'commander';
import { z } from 'zod';
import { databaseConfig, parseOptions, timeOption, withDatabase } from './command.ts';

/** Adds `audit-events list` (docs/security.md). */
export function addAuditCommands(program: Command): void {
  const group = program.command('audit-events').description('The audit log (docs/security.md)');
  group
    .command('list')
    .description('print audit events, oldest first, one JSON object on each line')
    .option('--company <id>', 'only of this company; otherwise also those of the installation')
    .option('--since <time>', 'recorded at this time or later: ISO time with a zone')
    .option('--until <time>', 'recorded at this time or earlier: ISO time with a zone')
    .action(listAuditEvents);
}

interface ListOptions {
  company?: string;
  since?: string;
  until?: string;
}

const spanOptions = z.object({ since: timeOption.optional(), until: timeOption.optional() });

async function listAuditEvents({ company, since, until }: ListOptions): Promise<void> {
  const { since: fromMs, until: toMs } = parseOptions(spanOptions, { since, until });
  await withDatabase(databaseConfig, async (db) => {
    for await (const event of createAuditStore(db).export(company ?? null, { fromMs, toMs })) {
      process.stdout.write(`${lineOf(event)}\n`);
    }
  });
}

/** The event as in the API, with its company; null for the installation. */
function lineOf({ createdAtMs, completedAtMs, companyId, ...event }: AuditEvent): string {
  return JSON.stringify({
    ...event,
    companyId: companyId === NO_COMPANY ? null : companyId,
    createdAt: new Date(createdAtMs).toISOString(),
    completedAt: completedAtMs === null ? null : new Date(completedAtMs).toISOString(),
  });
}
