import type { Message } from '@posthorn/domain/message.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';

export interface DoubtsDeps {
  messages: Pick<MessageStore, 'findDecided'>;
  /** Publishes messages outside the order of the watermark; rejects when Kafka did not take them. */
  publishLate: (messages: readonly Message[]) => Promise<void>;
  /** Monotonic: a clock that is set must not end a doubt early. */
  nowMs: () => number;
}

/**
 * Inserts that nobody answered (connection lost, write concern timed out). The client was told 503,
 * but the message may be there, and whatever is stored must end in a final state.
 */
export interface Doubts {
  add: (batch: readonly Message[]) => void;
  /** Publishes what turned up; gives up an id that is still absent after DOUBT_MS. */
  tick: () => Promise<void>;
  isAnyOpen: () => boolean;
  /** Keeps a watermark below the oldest doubt, so that a crash leaves it to the sweeper. */
  hold: (watermark: string) => string;
}

/** Longer than the write concern's time-out (10 s) and the socket's (20 s): nothing can turn up later. */
const DOUBT_MS = 60_000;
/** Messages that are looked for at once: 25 MiB of the largest. */
const PAGE = 100;

export function createDoubts({ messages, publishLate, nowMs }: DoubtsDeps): Doubts {
  const sinceMsOf = new Map<string, number>();
  return {
    add(batch) {
      for (const { id } of batch) sinceMsOf.set(id, nowMs());
    },
    async tick() {
      if (sinceMsOf.size === 0) return;
      const askedAtMs = nowMs();
      const open = [...sinceMsOf.keys()];
      for (let begin = 0; begin < open.length; begin += PAGE) {
        const found = await messages.findDecided(open.slice(begin, begin + PAGE));
        await publishLate(found);
        for (const { id } of found) sinceMsOf.delete(id);
      }
      for (const [id, sinceMs] of sinceMsOf) {
        if (askedAtMs - sinceMs > DOUBT_MS) sinceMsOf.delete(id);
      }
    },
    isAnyOpen: () => sinceMsOf.size > 0,
    hold(watermark) {
      let held = watermark;
      // An id without its last character sorts directly before the id.
      for (const id of sinceMsOf.keys()) if (id <= held) held = id.slice(0, -1);
      return held;
    },
  };
}
