import type { Resend } from '@posthorn/domain/resend.ts';
import type { ResendDocument } from '../documents/documents.ts';

/** Translates between resends and their documents, in which times are dates and a null owner is absent. */

export function toResendDocument(resend: Resend): ResendDocument {
  const { id, appId, partOf, outcome, abortAskedAtMs, createdAtMs, updatedAtMs, ...rest } = resend;
  const spanOf = spanOwnerOf(resend);
  return {
    _id: id,
    ...rest,
    ...(appId !== null && { appId }),
    ...(partOf !== null && { partOf }),
    ...(outcome !== null && { outcome }),
    ...(spanOf !== null && { spanOf }),
    ...(abortAskedAtMs !== null && { abortAskedAt: new Date(abortAskedAtMs) }),
    createdAt: new Date(createdAtMs),
    updatedAt: new Date(updatedAtMs),
  };
}

/**
 * The webhook whose failures of a span of time a new resend is for. Null for an app, for a part of that, and
 * where the deliveries are known from the beginning: one delivery, or a page of dead letters.
 */
export function spanOwnerOf({ webhookId, appId, partOf, page }: Resend): string | null {
  return appId === null && partOf === null && page.length === 0 ? webhookId : null;
}

export function toResend(document: ResendDocument): Resend {
  const { _id, companyId, webhookId, appId, partOf, outcome, afterId, beforeId, page } = document;
  const { status, abortAskedAt, total, succeeded, failed, createdAt, updatedAt } = document;
  return {
    id: _id,
    companyId,
    webhookId,
    afterId,
    beforeId,
    page,
    status,
    total,
    succeeded,
    failed,
    appId: appId ?? null,
    partOf: partOf ?? null,
    outcome: outcome ?? null,
    abortAskedAtMs: abortAskedAt?.getTime() ?? null,
    createdAtMs: createdAt.getTime(),
    updatedAtMs: updatedAt.getTime(),
  };
}
