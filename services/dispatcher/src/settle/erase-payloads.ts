import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { EraseDelivered } from '@posthorn/platform/mongo/messages/erase-payloads.ts';

/**
 * Erases the payloads of the messages of these attempts, if their app wants that and everything is
 * delivered. To be called after an outcome is recorded, and before the offset of its record is committed.
 */
export type ErasePayloads = (dues: readonly DueAttempt[]) => Promise<void>;

export interface ErasePayloadsDeps {
  eraseDelivered: EraseDelivered;
  keepTryingWhileDraining: KeepTrying;
}

/** Asks the store only for messages of apps that want it: no other attempt costs a read or a write. */
export function createErasePayloads(deps: ErasePayloadsDeps): ErasePayloads {
  return async (dues) => {
    const wanted = dues.filter(({ erasesPayload }) => erasesPayload);
    if (wanted.length === 0) return;
    const ids = [...new Set(wanted.map(({ messageId }) => messageId))];
    await deps.keepTryingWhileDraining(
      'erase payloads',
      () => deps.eraseDelivered(ids),
      () => ({ size: ids.length }),
    );
  };
}
