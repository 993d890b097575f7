import type { Resend } from '@posthorn/domain/resend.ts';
import type { ResendDocument } from '../documents.ts';

/** Translates between resends and their documents, in which times are dates and a null owner is absent. */

export function toResendDocument(resend: Resend): ResendDocument {
  const { id, appId, partOf, createdAtMs, updatedAtMs, ...rest } = resend;
  return {
    _id: id,
    ...rest,
    ...(appId !== null && { appId }),
    ...(partOf !== null && { partOf }),
    createdAt: new Date(createdAtMs),
    updatedAt: new Date(updatedAtMs),
  };
}

export function toResend(document: ResendDocument): Resend {
  const { _id, appId, partOf, createdAt, updatedAt, ...rest } = document;
  return {
    id: _id,
    ...rest,
    appId: appId ?? null,
    partOf: partOf ?? null,
    createdAtMs: createdAt.getTime(),
    updatedAtMs: updatedAt.getTime(),
  };
}
