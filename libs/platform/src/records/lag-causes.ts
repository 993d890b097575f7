import { causeOfLag, type LagCause } from '@posthorn/domain/ingest-lag.ts';
import type { GroupPosition, GroupPositions } from '../kafka/offsets/group-positions.ts';
import { keyOf } from '../kafka/record-log.ts';
import type { IngestReports } from '../redis/ingest-reports.ts';

interface LagCausesDeps {
  positions: Pick<GroupPositions, 'readOwners'>;
  reports: Pick<IngestReports, 'read'>;
  cluster: string;
}

/**
 * Returns why the records of each of these partitions wait, by `keyOf`, of those that have some. Without Redis the reasons of
 * their processes are unknown. Rejects when Kafka does not answer.
 */
export async function readLagCauses(
  { positions, reports, cluster }: LagCausesDeps,
  found: readonly GroupPosition[],
): Promise<ReadonlyMap<string, LagCause>> {
  const behind = found.filter(({ lag }) => lag > 0);
  if (behind.length === 0) return new Map();
  const [owners, reported] = await Promise.all([
    positions.readOwners(),
    reports.read(cluster, behind).catch(() => null),
  ]);
  return new Map(
    behind.map((each) => {
      const report = reported?.get(keyOf(each)) ?? null;
      return [
        keyOf(each),
        causeOfLag({ group: owners.state, isOwned: owners.isOwned(each), report }),
      ];
    }),
  );
}
