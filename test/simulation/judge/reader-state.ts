import type {
  Commit,
  PartitionWindow,
} from '@posthorn/platform/kafka/positions/partition-window.ts';
import type { Pauses } from '@posthorn/platform/kafka/positions/pauses.ts';
import type { ConsumeOptions, LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { Intake } from '@posthorn/platform/kafka/consumer/take-in.ts';
import type { Group, SimulatedKafka } from '../parts/simulated-kafka.ts';
import type { SimulatedProcess } from '../parts/simulated-process.ts';
import type { World } from '../run/world.ts';

export interface ReaderOptions extends Pick<
  ConsumeOptions,
  'groupId' | 'topics' | 'postponeMs' | 'window'
> {
  process: SimulatedProcess;
  handle: (record: LogRecord) => Promise<void>;
  /** For the invariants. */
  watch: ReaderWatch;
}

/** What the invariants want to know of a reader. */
export interface ReaderWatch {
  onHandled: (group: Group, record: LogRecord, process: SimulatedProcess) => void;
  onDone: (group: Group, record: LogRecord) => void;
  onCommit: (group: Group, commit: Commit) => void;
  /** These were begun and not committed when the group changed or the process ended. */
  onInterrupted: (records: readonly LogRecord[]) => void;
}

export interface Reader extends ReaderOptions {
  world: World;
  kafka: SimulatedKafka;
  group: Group;
  offsets: PartitionWindow;
  pauses: Pauses;
  intake: Intake;
  generation: number;
  /** Place → the next offset to fetch; only of what is assigned. */
  positions: Map<string, number>;
  paused: Set<string>;
  /** Places whose next batch is on its way. */
  fetching: Set<string>;
  begun: Map<string, LogRecord[]>;
  isCommitting: boolean;
}
