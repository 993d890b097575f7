import type { DisabledReason } from '@posthorn/domain/webhook.ts';
import type { SeenWebhook } from '@posthorn/platform/mongo/webhooks/failing-webhooks.ts';
import type { mongo } from 'mongoose';
import type { Registry } from 'prom-client';
import { createIdFactory } from '@posthorn/domain/ids.ts';
import { randomBytes } from 'node:crypto';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import {
  type AuditLog,
  createAuditLog,
  createAuditMetrics,
  createAuditStore,
} from '@posthorn/platform/mongo/companies/audit-log.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';

/**
 * Does what the API does with `disabled: true`: other processes notice within two seconds, and pending deliveries are
 * cancelled when they are due. The audit log names the system. Returns false, without an effect, when the webhook was
 * changed or deleted since it was seen. Needs no encryption key.
 */
export type DisableWebhook = (webhook: SeenWebhook, reason: DisabledReason) => Promise<boolean>;

/** Opens it for a process with the metrics of its audit log. */
export function openDisableWebhook(
  { registry, logger }: { registry: Registry; logger: Logger },
  db: mongo.Db,
  nowMs: () => number,
): DisableWebhook {
  const audit = createAuditLog({
    store: createAuditStore(db),
    refusalOf: () => null,
    observer: createAuditMetrics(registry, logger),
    newId: createIdFactory({ nowMs, randomBytes }),
    nowMs,
  });
  return createDisableWebhook({ db, audit, nowMs });
}

interface DisableDeps {
  db: mongo.Db;
  audit: Pick<AuditLog, 'recordChange'>;
  nowMs: () => number;
}

export function createDisableWebhook({ db, audit, nowMs }: DisableDeps): DisableWebhook {
  return ({ companyId, id, changedAtMs }, disabledReason) =>
    audit.recordChange(
      {
        companyId,
        action: 'webhook.updated',
        actor: { kind: 'system' },
        target: { kind: 'webhook', id },
        clientAddress: null,
        requestId: null,
        changes: [
          { field: 'disabled', before: false, after: true },
          { field: 'disabledReason', before: null, after: disabledReason },
        ],
      },
      async () => {
        const updatedAt = new Date(Math.max(nowMs(), changedAtMs + 1));
        const changed = await documentsOf(db, 'webhooks', companyId).updateOne(
          { _id: id, updatedAt: new Date(changedAtMs) },
          { $set: { disabled: true, disabledReason, updatedAt }, $unset: { failing: '' } },
        );
        return changed !== null;
      },
      (isDone) => (isDone ? {} : { changes: [] }),
    );
}
