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
import { createHoldNotes, type HoldNotes } from '@posthorn/platform/mongo/webhooks/holds.ts';

/**
 * Does what the API does with `disabled: true`: other processes notice within two seconds, pending deliveries are cancelled
 * when they are due, and those that wait for a hold or an ordering key by the note of the webhook. The audit log names the
 * system. Returns false, without an effect, when the webhook was changed or deleted since it was seen. Needs no encryption
 * key.
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
  return createDisableWebhook({ db, audit, notes: createHoldNotes(db), nowMs });
}

interface DisableDeps {
  db: mongo.Db;
  audit: Pick<AuditLog, 'recordChange'>;
  notes: Pick<HoldNotes, 'touch'>;
  nowMs: () => number;
}

/** By then the change is stored, or this process has ended. */
const LOOK_AFTER_MS = 1_000;

export function createDisableWebhook({ db, audit, notes, nowMs }: DisableDeps): DisableWebhook {
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
        const atMs = nowMs();
        // First, so that what waits is cancelled whenever this process ends (docs/decisions/0014-long-work-leaves-a-note-first.md).
        await notes.touch(
          { id, companyId, kind: 'webhook' },
          { atMs, dueAtMs: atMs + LOOK_AFTER_MS },
        );
        const updatedAt = new Date(Math.max(atMs, changedAtMs + 1));
        const changed = await documentsOf(db, 'webhooks', companyId).updateOne(
          { _id: id, updatedAt: new Date(changedAtMs) },
          { $set: { disabled: true, disabledReason, updatedAt }, $unset: { failing: '' } },
        );
        return changed !== null;
      },
      (isDone) => (isDone ? {} : { changes: [] }),
    );
}
