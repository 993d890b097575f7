import type { Commit } from '@posthorn/platform/kafka/offsets/owned-partitions.ts';
import type { ConsumeOptions, LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { BatchHandler } from '@posthorn/platform/kafka/consumer/batch-handler.ts';
import type { Group, SimulatedKafka } from '../infrastructure/simulated-kafka.ts';
import type { SimulatedProcess } from '../infrastructure/simulated-process.ts';
import type { World } from '../world/world.ts';

export interface ConsumerOptions extends Pick<
  ConsumeOptions,
  'groupId' | 'topics' | 'delayMs' | 'inFlightLimits' | 'handle'
> {
  process: SimulatedProcess;
  /** Used by the invariants. */
  observer: ConsumerObserver;
}

/** Is called with what a consumer does, to check the invariants. */
export interface ConsumerObserver {
  onHandled: (group: Group, record: LogRecord, process: SimulatedProcess) => void;
  onDone: (group: Group, record: LogRecord) => void;
  onCommit: (group: Group, commit: Commit) => void;
  /** Called with the records that had not been committed when the group was rebalanced or the process crashed. */
  onInterrupted: (records: readonly LogRecord[]) => void;
}

export interface SimulatedConsumer extends ConsumerOptions {
  world: World;
  kafka: SimulatedKafka;
  group: Group;
  batches: BatchHandler;
  generation: number;
  /** The next offset to fetch of each assigned partition, by keyOf(topicPartition). */
  positions: Map<string, number>;
  paused: Set<string>;
  /** The partitions with a fetch request in flight, by keyOf(topicPartition). */
  fetching: Set<string>;
  /** The records that were delivered to the handler and not committed, by keyOf(topicPartition). */
  uncommittedRecords: Map<string, LogRecord[]>;
  isCommitting: boolean;
}
