import { auditContract } from '../../../../../test/support/contract/audit-contract.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { createAuditStore } from './audit-log.ts';

auditContract(async () => {
  const { db, drop } = await openScratchDatabase();
  return { store: createAuditStore(db), close: drop };
});
