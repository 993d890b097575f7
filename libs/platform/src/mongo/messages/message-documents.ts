import { NONE_DISABLED, type Message } from '@posthorn/domain/message.ts';
import type { MessageDocument } from '../documents/documents.ts';

/** Translates between messages and their documents, in which what most messages do not have is absent. */

export function toDocument(message: Message): MessageDocument {
  const { id, createdAtMs, eventType, disabledTargets, idempotency, ...rest } = message;
  return {
    _id: id,
    ...rest,
    createdAt: new Date(createdAtMs),
    ...(eventType !== null && { eventType }),
    ...(disabledTargets.size > 0 && { disabledTargets: [...disabledTargets] }),
    ...(idempotency && { idempotency }),
  };
}

export function toMessage(document: MessageDocument): Message {
  const { _id, createdAt, eventType, disabledTargets, idempotency, ...rest } = document;
  return {
    id: _id,
    ...rest,
    createdAtMs: createdAt.getTime(),
    eventType: eventType ?? null,
    disabledTargets: disabledSetOf(disabledTargets),
    idempotency: idempotency ?? null,
  };
}

/** The set of what a document lists; it has no list when nothing was disabled. */
export function disabledSetOf(disabledTargets: readonly string[] | undefined): ReadonlySet<string> {
  return disabledTargets ? new Set(disabledTargets) : NONE_DISABLED;
}
