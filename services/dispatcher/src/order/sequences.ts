import { sequenceIdOf } from '@posthorn/domain/delivery/sequence.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import { type FollowersDeps, FollowersInMemory } from './followers-in-memory.ts';
import type { Entering, SequenceEntry } from './sequence-entry.ts';
import { type Place, SequenceInMemory, type SequenceParts } from './sequence-in-memory.ts';

type SequencesDeps = Omit<SequenceParts, 'followers' | 'onLeft' | 'onEmpty'> & FollowersDeps;

/**
 * Keeps deliveries with an ordering key in the order of their records (docs/contract.md C29). This process reads all records
 * of a webhook, so it knows the order without asking anybody.
 *
 * 1. Arrive: a record enters in the order of offsets, before the first `await` of its handling. Nowhere else is the order
 *    made. The first one of a key reads the document of its sequence.
 * 2. Follow in memory: the head has its attempt, and the others wait for it. When its success is read, the next one begins.
 *    Nothing is written for the sequence.
 * 3. Leave memory: when the head has not ended with its attempt, and when followers wait for too long or are too many
 *    (followers-in-memory.ts). The sequence is stored first, the delivery second, the offset third. While followers are
 *    stored, every delivery but the head has a document, and the sequence names a head that has none: so the store alone
 *    says what comes next.
 * 4. Refill: when the head has ended, the first followers are published, in their order, and come back as records. The record
 *    of a head is done only when the next one is in memory, published, or known to be missing.
 *
 * A record never decides the order: one that comes too early is stored again at its own position. What ends a head in another
 * process makes its sequence due for the retry service (look-at-sequences.ts).
 *
 * A record arrives here; its sequence (sequence-in-memory.ts) takes the other steps by the rules of order-rules.ts.
 */
export class Sequences {
  readonly #parts: SequenceParts;
  readonly #byId = new Map<string, SequenceInMemory>();
  readonly #byRecord = new WeakMap<LogRecord, SequenceEntry>();
  readonly #byAttempt = new Map<string, SequenceEntry>();

  constructor(deps: SequencesDeps) {
    this.#parts = {
      ...deps,
      followers: new FollowersInMemory(deps),
      onLeft: (entry) => {
        const { attemptId } = entry.due;
        if (this.#byAttempt.get(attemptId) === entry) this.#byAttempt.delete(attemptId);
      },
      onEmpty: (sequence) => {
        if (this.#byId.get(sequence.id) === sequence) this.#byId.delete(sequence.id);
      },
    };
  }

  /** Returns the place of a record; null for one that has none. To be called in the order of offsets. */
  enter(entering: Entering): Place | null {
    const { record, due } = entering;
    const { orderingKey, attemptId, trigger } = due;
    if (orderingKey === undefined || trigger === 'resend' || trigger === 'test') return null;
    const sequence = this.#sequenceOf(entering, orderingKey);
    const known = this.#byRecord.get(record);
    if (known && sequence.has(known)) {
      known.handleAgain();
      return sequence.placeOf(known);
    }
    // Whoever has the first one has not committed it.
    if (this.#byAttempt.get(attemptId)?.isAttemptHere()) return COPY;
    const entry = sequence.add(entering);
    this.#byRecord.set(record, entry);
    this.#byAttempt.set(attemptId, entry);
    return sequence.placeOf(entry);
  }

  /** Makes the retry service look at the sequence of a delivery that has ended outside its order. */
  async wake({ webhookId, orderingKey }: DueAttempt): Promise<void> {
    if (orderingKey === undefined) return;
    await this.#parts.store.makeDue(sequenceIdOf(webhookId, orderingKey));
  }

  #sequenceOf({ due, isOurs }: Entering, orderingKey: string): SequenceInMemory {
    const { companyId, webhookId } = due;
    const id = sequenceIdOf(webhookId, orderingKey);
    const known = this.#byId.get(id);
    if (known) {
      known.setPartition(isOurs);
      return known;
    }
    const place = { companyId, webhookId, orderingKey };
    const sequence = new SequenceInMemory(this.#parts, id, place, isOurs);
    this.#byId.set(id, sequence);
    return sequence;
  }
}

const nothing = (): void => undefined;
/** The place of a copy: whoever has the first record does everything. */
const COPY: Place = {
  turn: () => Promise.resolve('done'),
  succeeded: nothing,
  leave: () => Promise.resolve(),
  end: () => Promise.resolve(),
  fail: nothing,
};
