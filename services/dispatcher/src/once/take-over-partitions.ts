import type { ConsumeOptions } from '@posthorn/platform/kafka/record-log.ts';

type Assignment = Readonly<Record<string, readonly number[]>>;

export interface TakeOverDeps {
  /** Reads the circuits and holds that former owners have shared; the partitions are all that this process has now. */
  takeOverEndpoints: (partitions: ReadonlySet<number>) => Promise<void>;
  /** Announces the attempts that this process works on. */
  handOverAttempts: () => void;
  /** Waits until former owners have announced the attempts that they still work on. */
  takeOverAttempts: () => Promise<void>;
  attempt: ConsumeOptions['handle'];
}

export interface TakeOver {
  /** To be called before partitions can go to another process. */
  onRebalancing: () => void;
  /** To be called when a group has assigned its partitions, by topic, before their first record is handled. */
  onAssigned: (groupId: string, assignment: Assignment) => void;
  /** Makes the attempt of a record, once what its former owner shared is taken over. */
  handle: ConsumeOptions['handle'];
}

export function createTakeOver(deps: TakeOverDeps): TakeOver {
  const { handOverAttempts, takeOverEndpoints, takeOverAttempts, attempt } = deps;
  const byGroup = new Map<string, Assignment>();
  let takenOver: Promise<unknown> = Promise.resolve();
  return {
    onRebalancing: handOverAttempts,
    onAssigned(groupId, assignment) {
      byGroup.set(groupId, assignment);
      const all = [...byGroup.values()].flatMap((ofGroup) => Object.values(ofGroup).flat());
      takenOver = Promise.all([takeOverEndpoints(new Set(all)), takeOverAttempts()]);
    },
    async handle(record, isOurs) {
      await takenOver;
      await attempt(record, isOurs);
    },
  };
}
