import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { ToldFailing } from '@posthorn/domain/operator-events.ts';
import { documentsIn, documentsOf } from '../company-documents.ts';
import type { Database } from '../days/days.ts';
import { readByIds } from '../days/read-days.ts';
import type { WebhookDocument } from '../documents.ts';
import { createMessageQueries } from '../messages/message-queries.ts';

/** A webhook as a process has seen it. */
export interface SeenWebhook {
  id: string;
  companyId: string;
  /** The last change by a client, in milliseconds since 1970: the version of the webhook. */
  changedAtMs: number;
}

/** A webhook whose attempts fail. */
export interface FailingWebhook extends SeenWebhook {
  disabled: boolean;
  told: ToldFailing | null;
}

const READ = { companyId: 1, disabled: 1, updatedAt: 1, failing: 1 } as const;

type ReadDocument = Pick<WebhookDocument, '_id' | keyof typeof READ>;

/** The newest 200 messages; fewer when they have more than 500 targets on average. */
const BOUNDS = { messages: 200, targets: 100_000 };

/** Needs no encryption key: it reads no sealed value. */
export type FailingWebhooks = ReturnType<typeof createFailingWebhooks>;

export function createFailingWebhooks(db: Database) {
  const own = (companyId: string) => documentsOf(db, 'webhooks', companyId);
  const messages = createMessageQueries(db);
  return {
    async findOne(companyId: string, _id: string): Promise<FailingWebhook | null> {
      const [found] = await own(companyId).find({ _id }).project<ReadDocument>(READ).toArray();
      return found ? toFailingWebhook(found) : null;
    },
    /**
     * Whether the deliveries of its newest messages confirm the statistics: some were attempted since then, none
     * delivered.
     */
    async hasOnlyFailed({ companyId, id }: FailingWebhook, sinceMs: number): Promise<boolean> {
      const newest = await messages.listOutlines(companyId, { webhookId: id }, BOUNDS);
      const ids = newest.map((message) => deliveryIdOf(message.id, id));
      const updatedAt = { $gte: new Date(sinceMs) };
      const found = await readByIds(db.days.deliveries, ids, (documents, $in) =>
        documentsIn<'deliveries'>(documents, companyId)
          .find({ _id: { $in }, updatedAt })
          .project<{ status: string; attemptCount: number }>({ status: 1, attemptCount: 1 })
          .toArray(),
      );
      const attempted = found.filter(({ attemptCount }) => attemptCount > 0);
      return attempted.length > 0 && attempted.every(({ status }) => status !== 'delivered');
    },
    /** Stores the notification of the operator, unless the webhook was changed meanwhile. */
    async markTold(
      { companyId, id: _id, changedAtMs }: FailingWebhook,
      { sinceMs, disableAtMs }: ToldFailing,
    ): Promise<void> {
      // `updatedAt` stays: it is the version of the client's settings.
      const disableAt = disableAtMs === null ? null : new Date(disableAtMs);
      const failing = { since: new Date(sinceMs), disableAt };
      const seen = { _id, updatedAt: new Date(changedAtMs) };
      await own(companyId).updateOne(seen, { $set: { failing } });
    },
  };
}

function toFailingWebhook({
  _id: id,
  companyId,
  disabled,
  updatedAt,
  failing,
}: ReadDocument): FailingWebhook {
  const told = failing && {
    sinceMs: failing.since.getTime(),
    disableAtMs: failing.disableAt?.getTime() ?? null,
  };
  return { id, companyId, disabled, changedAtMs: updatedAt.getTime(), told: told ?? null };
}
