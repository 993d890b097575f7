/** A record as it was read. */
export interface LogRecord {
  topic: string;
  partition: number;
  offset: number;
  key: string;
  value: Buffer;
  headers: Readonly<Record<string, string>>;
  /**
   * True when somebody before us may have begun this record and not committed it: it was in the
   * partition already when that came to us, or when the group last changed. Work with an effect
   * outside is checked against what is recorded before it is done again.
   */
  isInherited: boolean;
}

export interface OutgoingRecord {
  topic: string;
  /** Records of one key share a partition. */
  key: string;
  value: Buffer;
  headers?: Readonly<Record<string, string>>;
}

export interface ConsumeOptions {
  groupId: string;
  topics: readonly string[];
  /**
   * Works on one record; it counts as done, and its offset may be committed, when the promise
   * resolves. After a rejection it is tried again; at a stop it is left uncommitted and read again
   * after the next start.
   * Records run side by side and may finish in any order.
   */
  handle: (record: LogRecord) => Promise<void>;
  /**
   * How long, in milliseconds, the record and everything behind it in its partition must wait
   * before `handle` gets it; 0 or less for now. It is asked again after the wait. `endOffset` is the
   * offset after the last record of its partition.
   */
  postponeMs?: (record: LogRecord, endOffset: number) => number;
  /** Reading of a topic pauses at `high` of its records under work and goes on at `low`. */
  window: { high: number; low: number };
  /**
   * False while nothing more is to be read, because what is under work fills the memory or the
   * process cannot keep up. Asked for each record, and again each time that one is done.
   */
  mayRead?: () => boolean;
  /**
   * How long, in milliseconds, a resumed partition may wait for its first fetch; 100 unless told. An
   * idle consumer asks this often.
   */
  maxWaitMs?: number;
  /** Called each time this member joined the group and knows its partitions; must not throw. */
  onAssigned?: () => void;
  /** False while a store that `handle` needs is away: standing still is no fault then. */
  isJudgeable?: () => boolean;
  /**
   * How long, in milliseconds, a partition with records to read may go without a commit before its
   * consumer begins anew; 120,000 unless told.
   */
  stallMs?: number;
}

export interface Consumption {
  /** Takes no further records, waits up to `drainMs` for those under work, commits, leaves the group. */
  stop: (drainMs: number) => Promise<void>;
  /** True while the consumer is a member of its group. */
  isRunning: () => boolean;
  /** False once a partition stands still that a new consumer did not move: only a restart is left. */
  isAlive: () => boolean;
}

/** The log as the services use it. The one adapter is Kafka; its contract suite runs on the real broker. */
export interface RecordLog {
  /** Resolves when every in-sync replica has all records; on a rejection some may be stored. */
  publish: (records: readonly OutgoingRecord[]) => Promise<void>;
  consume: (options: ConsumeOptions) => Promise<Consumption>;
  close: () => Promise<void>;
  isConnected: () => boolean;
}
