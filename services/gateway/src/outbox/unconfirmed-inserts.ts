import type { Message } from '@posthorn/domain/message/message.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';

export interface UnconfirmedInsertsDeps {
  messages: Pick<MessageStore, 'findCommitted'>;
  /** Publishes messages out of the order of the watermark. Rejects when Kafka did not store them. */
  publish: (messages: readonly Message[]) => Promise<void>;
  /** For how long in all a majority has stored heartbeats. Time without MongoDB must not give an insert up. */
  confirmedForMs: () => number;
}

/**
 * Inserts whose result is unknown: the connection was lost, or the write concern timed out. The
 * client got 503, but the message may be stored, and every stored message must be published.
 */
export interface UnconfirmedInserts {
  add: (batch: readonly Message[]) => void;
  /** Publishes the messages that are stored. Forgets those still absent after GIVE_UP_AFTER_MS. */
  tick: () => Promise<void>;
  hasAny: () => boolean;
  /** Returns the watermark, or an id directly below the oldest of these inserts if that is lower. */
  capWatermark: (watermark: string) => string;
}

/**
 * The timeouts of the write concern (10 s) and the socket (20 s) end only our wait: a mongod that was suspended executes
 * the insert when it resumes, even minutes later. So only time counts in which it stores for us, and of that far more than
 * an insert takes.
 */
const GIVE_UP_AFTER_MS = 60_000;
/** Messages per look-up: 25 MiB of the largest. */
const PAGE = 100;

/** While an insert is unconfirmed the watermark stays below it, so that after a crash the sweep finds it. */
export function createUnconfirmedInserts({
  messages,
  publish,
  confirmedForMs,
}: UnconfirmedInsertsDeps): UnconfirmedInserts {
  /** By message id: `confirmedForMs` when it was added. */
  const addedAtMs = new Map<string, number>();
  return {
    add(batch) {
      for (const { id } of batch) addedAtMs.set(id, confirmedForMs());
    },
    async tick() {
      if (addedAtMs.size === 0) return;
      const lookedUpAtMs = confirmedForMs();
      const ids = [...addedAtMs.keys()];
      for (let begin = 0; begin < ids.length; begin += PAGE) {
        const found = await messages.findCommitted(ids.slice(begin, begin + PAGE));
        await publish(found);
        for (const { id } of found) addedAtMs.delete(id);
      }
      for (const [id, atMs] of addedAtMs) {
        if (lookedUpAtMs - atMs > GIVE_UP_AFTER_MS) addedAtMs.delete(id);
      }
    },
    hasAny: () => addedAtMs.size > 0,
    capWatermark(watermark) {
      let capped = watermark;
      // An id without its last character sorts directly before the id.
      for (const id of addedAtMs.keys()) if (id <= capped) capped = id.slice(0, -1);
      return capped;
    },
  };
}
