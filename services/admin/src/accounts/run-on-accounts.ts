import { createAccountStore } from '@posthorn/platform/mongo/accounts/accounts.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { OutputOptions } from '../output.ts';
import { databaseConfig, runOnDatabase } from '../run-on-database.ts';
import type { AccountDeps } from './accounts.ts';

/** Runs `work` on the companies and API keys, and prints what it returns. */
export function runOnAccounts(
  output: OutputOptions,
  work: (deps: AccountDeps) => Promise<object>,
): Promise<void> {
  return runOnDatabase(output, databaseConfig, (db) =>
    work({ accounts: createAccountStore(db), newId: systemIds, nowMs: systemClockMs }),
  );
}
