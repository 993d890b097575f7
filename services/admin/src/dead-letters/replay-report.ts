/** Why a letter was not replayed. */
export type SkipReason =
  | 'cut'
  | 'unknown_source_topic'
  | 'source_topic_missing'
  | 'moved_on'
  | 'unreadable_record'
  | 'unknown_reason'
  | 'repeated'
  | 'not_stored'
  | 'delivered'
  | 'pending'
  | 'resend_running'
  | 'webhook_deleted'
  | 'webhook_disabled';

export interface ReplayTally {
  matched: number;
  /** Records that were published to their own topic again. */
  republished: number;
  /** Deliveries that get one more attempt. */
  resent: number;
  skipped: Partial<Record<SkipReason, number>>;
}

/** Counts what happens to each letter, and prints a line about it. */
export interface ReplayReport {
  matched: () => void;
  republished: (letterId: string, topic: string) => void;
  /** `resendId` is null in a dry run. */
  resent: (letterId: string, deliveryId: string, resendId: string | null) => void;
  skipped: (letterId: string, reason: SkipReason) => void;
  tally: () => ReplayTally;
}

export function createReplayReport(
  isDryRun: boolean,
  note: (letterId: string, text: string) => void,
): ReplayReport {
  const tally: ReplayTally = { matched: 0, republished: 0, resent: 0, skipped: {} };
  const done = isDryRun ? 'would be' : 'was';
  return {
    matched() {
      tally.matched += 1;
    },
    republished(letterId, topic) {
      tally.republished += 1;
      note(letterId, `record ${done} published again to ${topic}`);
    },
    resent(letterId, deliveryId, resendId) {
      tally.resent += 1;
      const by = resendId === null ? '' : ` by ${resendId}`;
      note(letterId, `one more attempt ${done} asked for${by}: ${deliveryId}`);
    },
    skipped(letterId, reason) {
      tally.skipped[reason] = (tally.skipped[reason] ?? 0) + 1;
      note(letterId, `skipped: ${reason}`);
    },
    tally: () => structuredClone(tally),
  };
}
