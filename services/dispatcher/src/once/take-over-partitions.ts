import type { ConsumeOptions } from '@posthorn/platform/kafka/record-log.ts';

export interface TakeOverDeps {
  /** Reads the circuits and holds that former owners of the endpoints have shared. */
  takeOverEndpoints: () => Promise<void>;
  /** Announces the attempts that this process works on. */
  handOverAttempts: () => void;
  /** Waits until former owners have announced the attempts that they still work on. */
  takeOverAttempts: () => Promise<void>;
  attempt: ConsumeOptions['handle'];
}

export interface TakeOver {
  /** To be called before partitions can go to another process. */
  onRebalancing: () => void;
  /** To be called when partitions were assigned, before their first record is handled. */
  onAssigned: () => void;
  /** Makes the attempt of a record, once what its former owner shared is taken over. */
  handle: ConsumeOptions['handle'];
}

export function createTakeOver(deps: TakeOverDeps): TakeOver {
  const { handOverAttempts, takeOverEndpoints, takeOverAttempts, attempt } = deps;
  let takenOver: Promise<unknown> = Promise.resolve();
  return {
    onRebalancing: handOverAttempts,
    onAssigned() {
      takenOver = Promise.all([takeOverEndpoints(), takeOverAttempts()]);
    },
    async handle(record, isOurs) {
      await takenOver;
      await attempt(record, isOurs);
    },
  };
}
