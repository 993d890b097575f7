import { keepTrying } from '../../async/keep-trying.ts';
import { systemClockMs } from '../../service/clock-and-ids.ts';
import { createPositionSource, type PositionSource } from '../positions/ask-positions.ts';
import type { ConsumeDeps } from './join-group.ts';
import { createReader, type Reader } from './read-as-member.ts';
import type { ConsumeOptions, Consumption } from '../record-log.ts';
import { watchForSetbacks } from './watch-for-setbacks.ts';
import { watchForStalls, type StallWatch } from './watch-for-stalls.ts';

const STALL_MS = 120_000;

/** The consumer of now, and the end of those before it. */
interface Lives {
  reader: Reader;
  retiring: Promise<void>;
  stopping: AbortController;
}

/** Reads the topics as one group member until stopped; a consumer that stalls is replaced by a new one. */
export async function consume(deps: ConsumeDeps, options: ConsumeOptions): Promise<Consumption> {
  const lives: Lives = {
    reader: createReader(deps, options),
    retiring: Promise.resolve(),
    stopping: new AbortController(),
  };
  await lives.reader.start();
  const positions = createPositionSource(deps.kafka, options);
  const watch = openWatch(deps, options, lives, positions);
  watch.start();
  const setbacks = watchForSetbacks({
    nowMs: systemClockMs,
    monotonicMs: () => performance.now(),
    onSetback(byMs) {
      deps.logger.warn(
        { groupId: options.groupId, byMs },
        'the clock was set back: a new consumer',
      );
      void beginAnew(deps, options, lives);
    },
  });
  return {
    isRunning: () => lives.reader.isRunning(),
    isAlive: watch.isAlive,
    async stop(drainMs) {
      lives.stopping.abort();
      watch.stop();
      setbacks.stop();
      await Promise.all([lives.reader.stop(drainMs), lives.retiring, positions.close()]);
    },
  };
}

function openWatch(
  deps: ConsumeDeps,
  options: ConsumeOptions,
  lives: Lives,
  positions: PositionSource,
): StallWatch {
  const { topics, groupId, stallMs = STALL_MS, isJudgeable = () => true } = options;
  return watchForStalls({
    topics,
    stallMs,
    isJudgeable,
    metrics: deps.metrics,
    askPositions: positions.ask,
    reader: () => lives.reader,
    restart: () => beginAnew(deps, options, lives),
    nowMs: systemClockMs,
    monotonicMs: () => performance.now(),
    logger: deps.logger.child({ groupId }),
  });
}

async function beginAnew(deps: ConsumeDeps, options: ConsumeOptions, lives: Lives): Promise<void> {
  const { signal } = lives.stopping;
  lives.retiring = Promise.all([lives.retiring, lives.reader.retire()]).then(() => undefined);
  const reader = createReader(deps, options);
  lives.reader = reader;
  // The old one leaves first, so that its partitions need not move twice.
  await lives.retiring;
  if (signal.aborted) return;
  const onFailure = (error: unknown): void => {
    deps.logger.warn(
      { err: error, groupId: options.groupId },
      'the new consumer did not start yet',
    );
  };
  // Not awaited: joining may take as long as Kafka is away, and the watch goes on meanwhile.
  keepTrying(reader.start, { signal, onFailure }).catch(() => undefined);
}
