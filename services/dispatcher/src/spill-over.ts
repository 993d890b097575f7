import { encodeRetryDue, refOf, type DueAttempt } from '@posthorn/domain/records.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import { createBatcher } from '@posthorn/platform/batcher.ts';
import type { LogRecord, OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { keepTrying } from '@posthorn/platform/keep-trying.ts';
import type { Counter } from 'prom-client';
import type { EndpointLanes } from './endpoint-lanes.ts';
import type { PutOff } from './put-off.ts';

/** Takes a due attempt away that found no room at its endpoint. Resolves when Kafka has it. */
export type SpillOver = (record: LogRecord, due: DueAttempt, webhook: Webhook) => Promise<void>;

export interface SpillDeps {
  log: Pick<RecordLog, 'publish'>;
  slowLaneTopic: string;
  lanes: Pick<EndpointLanes, 'book'>;
  putOff: PutOff;
  spills: Counter;
  /** Attempts put off because the slow lane had no room either. */
  deferrals: Counter;
  nowMs: () => number;
}

const BATCH = { maxItems: 500, lingerMs: 5, maxInFlight: 2 };

/**
 * From the fast lanes to the slow one, and from there to the delay topics, behind what was put off
 * before. A rate limit is kept by one lane only, so its attempts are put off at once.
 */
export function createSpillOver(deps: SpillDeps): SpillOver {
  const { lanes, putOff, slowLaneTopic: topic, nowMs } = deps;
  const publish = createBatcher<OutgoingRecord, undefined>({
    ...BATCH,
    run: async (records) => {
      await keepTrying(() => deps.log.publish(records));
      return records.map(() => undefined);
    },
  });
  return async (record, due, { id, rateLimitPerSecond }) => {
    if (record.topic === topic || rateLimitPerSecond !== null) {
      await putOff(record, due, { turnAtMs: lanes.book(id, nowMs()), fit: 'few' });
      deps.deferrals.inc();
      return;
    }
    const { attemptNumber, trigger, dueAtMs } = due;
    const value = encodeRetryDue({ ...refOf(due), attemptNumber, trigger, dueAtMs });
    await publish.add({ topic, key: record.key, value, headers: record.headers });
    deps.spills.inc();
  };
}
