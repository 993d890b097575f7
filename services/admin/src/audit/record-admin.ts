import type { AuditAction, AuditTarget } from '@posthorn/domain/audit/audit-event.ts';
import { changesBetween, type AuditedFields } from '@posthorn/domain/audit/changes.ts';
import { createAuditLog } from '@posthorn/platform/audit/audit-log.ts';
import { createAuditStore } from '@posthorn/platform/mongo/audit/audit-events.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { mongo } from 'mongoose';

export interface AdminAction {
  /** NO_COMPANY for what concerns the installation. */
  companyId: string;
  action: AuditAction;
  target: AuditTarget;
  /** What is asked for. */
  fields: AuditedFields;
}

/**
 * Makes a change, and records it in the audit log. `fieldsOf` returns what was changed, when it is not what was
 * asked for. Throws before anything is changed when the event cannot be stored.
 */
export type RecordAdmin = <Result>(
  action: AdminAction,
  make: () => Promise<Result>,
  fieldsOf?: (result: Result) => AuditedFields,
) => Promise<Result>;

export function createRecordAdmin(db: mongo.Db): RecordAdmin {
  const log = createAuditLog({
    store: createAuditStore(db),
    // What the command refuses it refuses before; after any other failure a part may have been changed.
    refusalOf: () => null,
    observer: {
      stored: () => undefined,
      notCompleted: ({ id }) => {
        process.stderr.write(`The audit event ${id} stays started: it could not be completed.\n`);
      },
    },
    newId: systemIds,
    nowMs: systemClockMs,
  });
  return ({ fields, ...action }, make, fieldsOf) =>
    log.recordChange(
      {
        ...action,
        actor: { kind: 'admin' },
        clientAddress: null,
        requestId: null,
        changes: changesBetween({}, fields),
      },
      make,
      (result) => (fieldsOf ? { changes: changesBetween({}, fieldsOf(result)) } : {}),
    );
}
