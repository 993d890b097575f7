import { startTicker, type Ticker } from '@posthorn/platform/async/ticker.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import {
  REPEAT_REPORT_MS,
  type ReadingPositions,
} from '@posthorn/platform/redis/reading-positions.ts';

/** Reports to the gateways how far the records of fresh messages are begun here. */
export interface ReadingReporter {
  /** Notes a record of the topic of fresh messages that is begun now. */
  note: (record: Pick<LogRecord, 'partition' | 'timestampMs'>) => void;
  tick: () => void;
  /** Ends the reports of all partitions until a record of them is begun: they may be of another dispatcher now. */
  forget: () => void;
}

const EVERY_MS = 200;

export function createReadingReporter(
  positions: Pick<ReadingPositions, 'report'>,
  monotonicMs: () => number,
): ReadingReporter {
  const latest = new Map<number, number>();
  let changed = new Map<number, number>();
  let repeatedAtMs = monotonicMs();
  return {
    note({ partition, timestampMs }) {
      // The latest, not the last: else a gateway whose clock is ahead would count its records as unread for as long.
      const atMs = Math.max(timestampMs, latest.get(partition) ?? 0);
      latest.set(partition, atMs);
      changed.set(partition, atMs);
    },
    tick() {
      const isRepeated = monotonicMs() - repeatedAtMs >= REPEAT_REPORT_MS;
      if (isRepeated) repeatedAtMs = monotonicMs();
      const due = isRepeated ? new Map(latest) : changed;
      if (due.size > 0) positions.report(due);
      changed = new Map();
    },
    forget() {
      latest.clear();
      changed.clear();
    },
  };
}

export function startReporting({ tick }: ReadingReporter): Ticker {
  return startTicker(EVERY_MS, tick);
}
