import { createCompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { createRecordAdmin } from '../audit/record-admin.ts';
import type { OutputOptions } from '../output.ts';
import { databaseConfig, runOnDatabase } from '../run-on-database.ts';
import type { CompanyDeps } from './companies.ts';

/** Runs `work` on the companies and API keys, and prints what it returns. */
export function runOnCompanies(
  output: OutputOptions,
  work: (deps: CompanyDeps) => Promise<object>,
): Promise<void> {
  return runOnDatabase(output, databaseConfig, (db) =>
    work({
      companies: createCompanyStore(db),
      hasApp: async (companyId, _id) =>
        (await documentsOf(db, 'apps', companyId).findOne({ _id })) !== null,
      record: createRecordAdmin(db),
      newId: systemIds,
      nowMs: systemClockMs,
    }),
  );
}
