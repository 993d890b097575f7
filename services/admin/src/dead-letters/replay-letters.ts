import type { Letter } from './read-letter.ts';
import type { ReplayReport } from './replay-report.ts';
import type { Failure, ResendLetters } from './resend-letters.ts';

export interface ReplayDeps {
  report: ReplayReport;
  republish: (letters: readonly Letter[]) => Promise<void>;
  resend: ResendLetters;
}

export interface Replay {
  /** Adds a letter, and replays the letters that were added once they are enough for one batch. */
  add: (letter: Letter) => Promise<void>;
  /** Replays the rest. */
  finish: () => Promise<void>;
}

/** Sizes of a batch. Unreadable records are held whole, failed deliveries by their ids only. */
const MAX_RECORDS = 500;
const MAX_RECORD_BYTES = 8_388_608;
const MAX_FAILURES = 10_000;

/**
 * Replays letters: publishes unreadable records to their own topics again, and resends deliveries that
 * failed for good, as the API does.
 */
export function createReplay({ report, republish, resend }: ReplayDeps): Replay {
  const records = createBatch<Letter>(
    { count: MAX_RECORDS, bytes: MAX_RECORD_BYTES },
    ({ record }) => record.value.length,
    republish,
  );
  const failures = createBatch<Failure>({ count: MAX_FAILURES, bytes: Infinity }, () => 0, resend);

  async function addFailure({ id, content }: Letter): Promise<void> {
    if (!content) {
      report.skipped(id, 'unreadable_record');
      return;
    }
    const { companyId, webhookId, deliveryId } = content;
    await failures.add({ letterId: id, companyId, webhookId, deliveryId });
  }

  return {
    async add(letter) {
      report.matched();
      if (isRecord(letter)) await records.add(letter);
      else if (isFailure(letter)) await addFailure(letter);
      else report.skipped(letter.id, 'unknown_reason');
    },
    async finish() {
      await records.flush();
      await failures.flush();
    },
  };
}

interface Batch<T> {
  add: (item: T) => Promise<void>;
  flush: () => Promise<void>;
}

function createBatch<T>(
  most: { count: number; bytes: number },
  bytesOf: (item: T) => number,
  work: (items: readonly T[]) => Promise<void>,
): Batch<T> {
  let items: T[] = [];
  let bytes = 0;
  async function flush(): Promise<void> {
    const batch = items;
    [items, bytes] = [[], 0];
    if (batch.length > 0) await work(batch);
  }
  return {
    async add(item) {
      items.push(item);
      bytes += bytesOf(item);
      if (items.length >= most.count || bytes >= most.bytes) await flush();
    },
    flush,
  };
}

/** True if the record was not processed. Its reader checks it again: a replay proves nothing. */
function isRecord({ reason }: Letter): boolean {
  return ['unreadable_record', 'unproven_record', 'company_mismatch'].includes(reason);
}

/** True if the letter is of a delivery in a final state. */
function isFailure({ reason }: Letter): boolean {
  return reason === 'schedule_exhausted' || reason === 'message_missing';
}
