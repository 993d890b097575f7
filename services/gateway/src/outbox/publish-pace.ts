import type { Message } from '@posthorn/domain/message/message.ts';

/**
 * What the process does for one record of a message, in milliseconds: it is built, signed, sorted into its partition,
 * encoded and sent, and the delivery is part of the response. Beside `npm run bench -- greedy` it took 0.02 to 0.03 ms.
 */
export const MS_PER_RECORD = 0.025;

/** Records of a message between two rests: 2.5 ms of CPU time. A message to fewer webhooks never rests. */
export const PIECE_RECORDS = 100;

/** How a message to many webhooks is published where other companies use the gateway. */
export interface PublishPace {
  /** How long a message rests after so many of its records, in milliseconds; 0 when it may go on. */
  restMs: (message: Pick<Message, 'companyId'>, records: number) => number;
  /** Calls the function once, after this many milliseconds. */
  after: (ms: number, run: () => void) => void;
}

/** No message rests. */
export const NO_PACE: PublishPace = { restMs: () => 0, after: () => undefined };

interface PaceDeps {
  /** How long a company pauses after so much work, in milliseconds. */
  pauseMs: (companyId: string, workMs: number) => number;
  after: PublishPace['after'];
}

export function createPublishPace({ pauseMs, after }: PaceDeps): PublishPace {
  return {
    after,
    restMs: ({ companyId }, records) => pauseMs(companyId, records * MS_PER_RECORD),
  };
}

/** A message in the middle of its records. */
interface Resting {
  source: { message: Pick<Message, 'companyId'> };
}

/** Messages that rest. Those of one company go on one after the other, not all at once. */
export interface RestingMessages<Item> {
  /** Whether a message has to rest after so many of its records. */
  mustRest: (item: Item, records: number) => boolean;
  /** The message goes on before those of its company that rest already. */
  add: (item: Item) => void;
  /** Releases all of them, and at once what is added from now on. */
  end: () => void;
}

export function createRestingMessages<Item extends Resting>(
  { restMs, after }: PublishPace,
  release: (item: Item) => void,
): RestingMessages<Item> {
  const byCompany = new Map<string, Item[]>();
  let isEnded = false;

  function releaseAfterRest(companyId: string, { source }: Item): void {
    after(restMs(source.message, PIECE_RECORDS), () => {
      releaseFirst(companyId);
    });
  }
  function releaseFirst(companyId: string): void {
    const [first, next, ...others] = byCompany.get(companyId) ?? [];
    byCompany.delete(companyId);
    if (next) {
      byCompany.set(companyId, [next, ...others]);
      releaseAfterRest(companyId, next);
    }
    if (first) release(first);
  }
  return {
    mustRest: ({ source }, records) =>
      !isEnded && records >= PIECE_RECORDS && restMs(source.message, records) > 0,
    add(item) {
      if (isEnded) {
        release(item);
        return;
      }
      const { companyId } = item.source.message;
      const before = byCompany.get(companyId);
      byCompany.set(companyId, [item, ...(before ?? [])]);
      if (before === undefined) releaseAfterRest(companyId, item);
    },
    end() {
      isEnded = true;
      const all = [...byCompany.values()].flat();
      byCompany.clear();
      all.forEach(release);
    },
  };
}
