import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { PayloadErasure } from '@posthorn/platform/mongo/messages/erase-payloads.ts';

/**
 * Makes sure that the payloads of the messages of these attempts are erased, if their app wants that, once everything
 * is delivered. To be called after an outcome is recorded, and before the offset of its record is committed.
 */
export type ErasePayloads = (dues: readonly DueAttempt[]) => Promise<void>;

export interface ErasePayloadsDeps {
  erasure: Pick<PayloadErasure, 'eraseOrNote' | 'note'>;
  keepTryingWhileDraining: KeepTrying;
  monotonicMs: () => number;
}

/**
 * A note covers the successes of its message that are recorded within this time, which is far below CHECK_AFTER_MS: the
 * message is looked at after them.
 */
const COVERED_MS = 1_000;
/** 1 MB of ids. What does not fit is noted again. */
const MAX_COVERED = 10_000;

/** Asks the store only for messages of apps that want it, and each second once for a message with many targets. */
export function createErasePayloads(deps: ErasePayloadsDeps): ErasePayloads {
  /** When the note of a message was begun, the earliest first. */
  const coveredSinceMs = new Map<string, number>();
  const isCovered = (messageId: string, nowMs: number): boolean =>
    nowMs - (coveredSinceMs.get(messageId) ?? -Infinity) < COVERED_MS;
  const cover = (messageId: string, sinceMs: number): void => {
    coveredSinceMs.delete(messageId);
    coveredSinceMs.set(messageId, sinceMs);
    if (coveredSinceMs.size <= MAX_COVERED) return;
    for (const earliest of coveredSinceMs.keys()) {
      coveredSinceMs.delete(earliest);
      return;
    }
  };
  return async (dues) => {
    const nowMs = deps.monotonicMs();
    const wanted = dues.filter((due) => due.erasesPayload && !isCovered(due.messageId, nowMs));
    if (wanted.length === 0) return;
    const ids = wanted.map(({ messageId }) => messageId);
    await deps.keepTryingWhileDraining(
      'erase payloads',
      async () => {
        const sinceMs = deps.monotonicMs();
        // To look at a message with 10,000 targets again takes MongoDB longer than to write its note.
        const known = new Set(ids.filter((id) => coveredSinceMs.has(id)));
        await deps.erasure.note([...known]);
        const others = wanted.filter(({ messageId }) => !known.has(messageId));
        const noted = others.length === 0 ? [] : await deps.erasure.eraseOrNote(others);
        for (const id of [...known, ...noted]) cover(id, sinceMs);
      },
      () => ({ size: wanted.length }),
    );
  };
}
