import type { Resend } from '@posthorn/domain/resend.ts';
import { ResendMovedError, type ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import type { WorkNotes } from '@posthorn/platform/mongo/work-notes.ts';
import {
  type ClaimedWork,
  type ClaimedWorkDeps,
  createClaimedWork,
} from '@posthorn/platform/work/claimed-work.ts';
import { sendReplay, type SendReplayDeps } from './send-replay.ts';
import { sendResend, type SendResendDeps } from './send-resend.ts';
import { ResendSlot, type SlotDeps } from './slot.ts';

export interface ResendsDeps
  extends
    SendResendDeps,
    SendReplayDeps,
    SlotDeps,
    Pick<ClaimedWorkDeps<Resend>, 'newClaim' | 'logger'> {
  resends: SendResendDeps['resends'] &
    SendReplayDeps['resends'] &
    Pick<ResendStore, keyof WorkNotes<Resend>>;
}

/** Resends of one delivery take 0.1 s; one of many deliveries leaves its slot after three seconds when others wait. */
const SLOTS = { ofAll: 100, ofCompany: 20 };
const MOVED_AGAIN_MS = 1_000;

/**
 * Sends resends and replays. One that waits for its endpoint holds no slot: it is put back with the time when it is due, and
 * then claimed by any process with one statement.
 */
export function createResends(deps: ResendsDeps): ClaimedWork {
  return createClaimedWork({
    ...deps,
    name: 'resends',
    notes: deps.resends,
    slots: SLOTS,
    fieldsOf: ({ id: resendId, webhookId, appId }) => ({ resendId, webhookId, appId }),
    async work(resend, { signal, isWanted }) {
      const slot = new ResendSlot(deps, resend, isWanted);
      const send = resend.kind === 'replay' ? sendReplay : sendResend;
      try {
        return await send(deps, slot, resend, signal);
      } catch (error) {
        // Another process claimed it while this one was suspended, and has moved it on. It is read again.
        if (error instanceof ResendMovedError) return deps.nowMs() + MOVED_AGAIN_MS;
        throw error;
      }
    },
  });
}
