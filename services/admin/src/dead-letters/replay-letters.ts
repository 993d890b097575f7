import type { Letter } from './read-letter.ts';
import type { ReplayBook } from './replay-tally.ts';
import type { Failure, ResendFailures } from './resend-failures.ts';

export interface ReplayDeps {
  book: ReplayBook;
  republish: (letters: readonly Letter[]) => Promise<void>;
  resend: ResendFailures;
}

export interface Replay {
  /** Takes the letters one by one, and works whenever it holds enough for one step. */
  add: (letter: Letter) => Promise<void>;
  /** Works on what it still holds. */
  finish: () => Promise<void>;
}

/** What is held before it is worked on: whole records, and of failed deliveries only their ids. */
const MAX_RECORDS = 500;
const MAX_RECORD_BYTES = 8_388_608;
const MAX_FAILURES = 10_000;

/**
 * What could not be read goes back to where it came from; what has failed for good is resent, as
 * the API does it.
 */
export function createReplay({ book, republish, resend }: ReplayDeps): Replay {
  const records = createHeld<Letter>(
    { count: MAX_RECORDS, bytes: MAX_RECORD_BYTES },
    ({ record }) => record.value.length,
    republish,
  );
  const failures = createHeld<Failure>({ count: MAX_FAILURES, bytes: Infinity }, () => 0, resend);

  async function addFailure({ id, content }: Letter): Promise<void> {
    if (!content) {
      book.skipped(id, 'unreadable_record');
      return;
    }
    const { companyId, webhookId, deliveryId } = content;
    await failures.add({ letterId: id, companyId, webhookId, deliveryId });
  }

  return {
    async add(letter) {
      book.matched();
      if (letter.reason === 'unreadable_record') await records.add(letter);
      else if (isFailure(letter)) await addFailure(letter);
      else book.skipped(letter.id, 'unknown_reason');
    },
    async finish() {
      await records.flush();
      await failures.flush();
    },
  };
}

interface Held<T> {
  add: (item: T) => Promise<void>;
  flush: () => Promise<void>;
}

function createHeld<T>(
  most: { count: number; bytes: number },
  bytesOf: (item: T) => number,
  work: (items: readonly T[]) => Promise<void>,
): Held<T> {
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

/** Its delivery is final. */
function isFailure({ reason }: Letter): boolean {
  return reason === 'schedule_exhausted' || reason === 'message_missing';
}
