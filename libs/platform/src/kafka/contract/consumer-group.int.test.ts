import {
  consumerGroupContract,
  type TestGroup,
} from '../../../../../test/support/contract/consumer-group-contract.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';

consumerGroupContract(async () => {
  const scratch = await openScratchLog();
  let groups = 0;
  return {
    newGroup: () => newGroup(scratch, (groups += 1)),
    close: () => scratch.records.close(),
  };
});

async function newGroup({ records, newTopic }: ScratchLog, n: number): Promise<TestGroup> {
  const topics = [await newTopic(`group-${n}`), await newTopic(`group-${n}-twin`)] as const;
  return {
    topics,
    publish: records.publish,
    async join(options) {
      const consumption = await records.consume({
        groupId: `${topics[0]}-readers`,
        topics,
        inFlightLimits: { pauseAt: 1_000, resumeAt: 500 },
        ...options,
      });
      await eventually('a member', consumption.isRunning);
      return { end: () => consumption.stop(500) };
    },
    async until(what, holds) {
      await eventually(what, holds);
    },
    nowMs: Date.now,
  };
}
