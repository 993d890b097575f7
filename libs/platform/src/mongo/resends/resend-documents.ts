import type { PageProgress, Resend } from '@posthorn/domain/resend.ts';
import type { ResendDocument } from '../documents/documents.ts';

/** Translates between resends and their documents, in which times are dates and a null owner is absent. */

export function toResendDocument(resend: Resend): ResendDocument {
  const { id, appId, partOf, outcome, progress, ...others } = resend;
  const { scannedTo, dueAtMs, abortAskedAtMs, createdAtMs, updatedAtMs, ...rest } = others;
  const spanOf = spanOwnerOf(resend);
  return {
    _id: id,
    ...rest,
    ...(appId !== null && { appId }),
    ...(partOf !== null && { partOf }),
    ...(outcome !== null && { outcome }),
    ...(spanOf !== null && { spanOf }),
    ...(progress !== null && { progress: { ...progress, afterId: resend.afterId } }),
    ...(scannedTo !== '' && { scannedTo }),
    ...(dueAtMs !== null && { dueAt: new Date(dueAtMs) }),
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
  const { status, dueAt, abortAskedAt, total, succeeded, failed, createdAt, updatedAt } = document;
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
    progress: progressOf(document),
    scannedTo: document.scannedTo ?? '',
    dueAtMs: dueAt?.getTime() ?? null,
    abortAskedAtMs: abortAskedAt?.getTime() ?? null,
    createdAtMs: createdAt.getTime(),
    updatedAtMs: updatedAt.getTime(),
  };
}

/** A gateway of an earlier version moves to the next page and leaves the field as it is. */
function progressOf({ afterId, page, progress }: ResendDocument): PageProgress | null {
  if (!progress || page.length === 0) return null;
  const { afterId: ofPage, ...known } = progress;
  return ofPage === afterId ? known : null;
}
