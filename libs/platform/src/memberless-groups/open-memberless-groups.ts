import { systemClockMs } from '../service/clock-and-ids.ts';
import type { ServiceContext } from '../service/run-service.ts';
import type { OpenRecordLog } from '../kafka/open-record-log.ts';
import { createMemberlessGroups } from './memberless-groups.ts';

/** Watches all groups of the installation until the service stops. */
export function openMemberlessGroups(
  { registry, logger, lifecycle }: ServiceContext<unknown>,
  { kafka, groups, delayTopics }: OpenRecordLog,
): void {
  const memberless = createMemberlessGroups({
    kafka,
    groups: Object.values(groups),
    readyAfterMs: (topic) => delayTopics.get(topic)?.delayMs ?? 0,
    registry,
    logger,
    nowMs: systemClockMs,
  });
  memberless.start();
  lifecycle.onStop('groups without members', memberless.stop);
}
