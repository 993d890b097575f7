import { startTicker, type Ticker } from '@posthorn/platform/async/ticker.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import {
  READING_TTL_MS,
  type ReadingPositions,
} from '@posthorn/platform/redis/reading-positions.ts';

/** Reports to the gateways how far the records of fresh messages are begun here. */
export interface ReadingReporter {
  /** Notes a record of the topic of fresh messages that is begun now. */
  note: (record: Pick<LogRecord, 'partition' | 'timestampMs'>) => void;
  tick: () => void;
  /** Makes the next tick report even if nothing has changed. */
  repeat: () => void;
}

const EVERY_MS = 200;
/** An unchanged report is repeated after this time, three times before Redis expires it. */
const REPEAT_AFTER_MS = READING_TTL_MS / 3;

export function createReadingReporter(
  positions: Pick<ReadingPositions, 'report'>,
  monotonicMs: () => number,
): ReadingReporter {
  let changed = new Map<number, number>();
  let reportedAtMs = -Infinity;
  return {
    note({ partition, timestampMs }) {
      changed.set(partition, timestampMs);
    },
    tick() {
      const nowMs = monotonicMs();
      if (changed.size === 0 && nowMs - reportedAtMs < REPEAT_AFTER_MS) return;
      positions.report(changed);
      changed = new Map();
      reportedAtMs = nowMs;
    },
    repeat() {
      reportedAtMs = -Infinity;
    },
  };
}

export function startReporting({ tick }: ReadingReporter): Ticker {
  return startTicker(EVERY_MS, tick);
}
