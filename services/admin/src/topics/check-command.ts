import { parseConfig } from '@posthorn/platform/service/settings/config.ts';
import { printResult, type OutputOptions } from '../output.ts';
import { driftTable } from './describe-drift.ts';
import { examineTopics, topicsConfig } from './examine-topics.ts';

/** Prints where topics differ from their contract, and sets exit code 1 if one does or is missing. */
export async function checkTopics(options: OutputOptions): Promise<void> {
  const { topics, missing, drifts, unpinned } = await examineTopics(
    parseConfig('admin', topicsConfig, process.env),
  );
  if (drifts.length > 0 || missing.length > 0) process.exitCode = 1;
  if (options.json) {
    printResult(options, { topics, missing, drifts, unpinned });
    return;
  }
  const lines = [
    ...(drifts.length > 0 ? [driftTable(drifts)] : []),
    ...missing.map((name) => `${name} does not exist: run deploy/setup/create-topics.ts`),
    `${topics} topics, ${drifts.length} differences` +
      (unpinned.length > 0
        ? `, ${unpinned.length} settings by the defaults of the brokers: topics apply pins them`
        : ''),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
