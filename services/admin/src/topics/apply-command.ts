import { planTopicChanges, type TopicPlan } from '@posthorn/domain/records/plan-topic-changes.ts';
import { parseConfig } from '@posthorn/platform/service/settings/config.ts';
import { printResult, type OutputOptions } from '../output.ts';
import { driftTable } from './describe-drift.ts';
import { examineTopics, topicsConfig } from './examine-topics.ts';

export interface ApplyOptions extends OutputOptions {
  dryRun?: boolean;
  force?: boolean;
}

/** Writes the settings that differ or are not pinned. Sets exit code 1 if differences remain. */
export async function applyTopics({ dryRun, force, ...output }: ApplyOptions): Promise<void> {
  const { access, missing, drifts, unpinned } = await examineTopics(
    parseConfig('admin', topicsConfig, process.env),
  );
  const plan = planTopicChanges(drifts, unpinned, { force: force ?? false });
  const isDryRun = dryRun ?? false;
  // Loaded only where it is used: without this Kafka client every command starts in half the time (0.77 → 0.39 s).
  const { applyTopicChanges } =
    await import('@posthorn/platform/kafka/topics/apply-topic-changes.ts');
  await applyTopicChanges(access, plan.changes, { isDryRun });
  const left = [...plan.held, ...plan.byHand];
  if (left.length > 0 || missing.length > 0) process.exitCode = 1;
  if (output.json) printResult(output, { dryRun: isDryRun, missing, ...plan });
  else process.stdout.write(`${textOf(plan, missing, isDryRun)}\n`);
}

function textOf(
  { changes, held, byHand }: TopicPlan,
  missing: string[],
  isDryRun: boolean,
): string {
  const written = changes.flatMap(({ topic, settings }) =>
    Object.entries(settings).map(([name, value]) => `${topic}  ${name}=${value}`),
  );
  const left = [...held, ...byHand];
  return [
    ...written,
    `${written.length} settings of ${changes.length} topics ${isDryRun ? 'would be written' : 'written'}`,
    ...(left.length > 0 ? [`Left as they are:\n${driftTable(left)}`] : []),
    ...missing.map((name) => `${name} does not exist: run deploy/setup/create-topics.ts`),
  ].join('\n');
}
