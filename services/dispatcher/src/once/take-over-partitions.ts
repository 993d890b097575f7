import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';

export interface TakeOverDeps {
  /** Reads the circuits and holds that former owners of the endpoints have shared. */
  takeOverEndpoints: () => Promise<void>;
  /** Announces the attempts that this process works on. */
  handOverAttempts: () => void;
  /** Waits until former owners have announced the attempts that they still work on. */
  takeOverAttempts: () => Promise<void>;
  attempt: (record: LogRecord) => Promise<void>;
}

export interface TakeOver {
  /** To be called before partitions can go to another process. */
  onRebalancing: () => void;
  /** To be called when partitions were assigned, before their first record is handled. */
  onAssigned: () => void;
  /** Makes the attempt of a record, once what its former owner shared is taken over. */
  handle: (record: LogRecord) => Promise<void>;
}

export function createTakeOver(deps: TakeOverDeps): TakeOver {
  const { handOverAttempts, takeOverEndpoints, takeOverAttempts, attempt } = deps;
  let takenOver: Promise<unknown> = Promise.resolve();
  return {
    onRebalancing: handOverAttempts,
    onAssigned() {
      takenOver = Promise.all([takeOverEndpoints(), takeOverAttempts()]);
    },
    async handle(record) {
      await takenOver;
      await attempt(record);
    },
  };
}
