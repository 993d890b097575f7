import {
  findCopyDrift,
  findSettingDrift,
  type Drift,
} from '@posthorn/domain/records/topic-drift.ts';
import { Gauge, type Registry } from 'prom-client';
import { StartupError } from '../../service/errors.ts';
import type { Logger } from '../../service/logger.ts';
import type { FoundTopics } from './observe-topics.ts';

const COMMAND = 'npm run admin -- topics';

interface CheckTopicsDeps {
  registry: Registry;
  logger: Pick<Logger, 'warn'>;
}

/**
 * Throws StartupError when settings of the topics could lose records, or keep them from being written or read.
 * Logs one warning when others differ, or when this user may not read them.
 */
export function checkTopics(
  { specs, observed, unreadable }: Omit<FoundTopics, 'existing'>,
  { registry, logger }: CheckTopicsDeps,
): void {
  const gauges = openGauges(registry);
  if (unreadable !== null) {
    logger.warn(
      { reason: unreadable },
      'the settings of the topics could not be checked: it needs the right DescribeConfigs (docs/security.md)',
    );
    return;
  }
  const drifts = [...findSettingDrift(specs, observed), ...findCopyDrift(observed)];
  gauges.checked.set(observed.length);
  gauges.differing.set(drifts.length);
  const refused = drifts.filter(({ severity }) => severity === 'refuse');
  if (refused.length > 0) throw refusalOf(refused);
  if (drifts.length === 0) return;
  logger.warn(
    { differences: drifts.length, first: describe(drifts[0]) },
    `settings of the topics differ from docs/topics.md, without danger for records: ${COMMAND} check`,
  );
}

function refusalOf(drifts: readonly Drift[]): StartupError {
  const lines = drifts.map((drift) => `  ${describe(drift)}: ${drift.meaning}`);
  return new StartupError(
    [
      'Settings of topics could lose records or stop deliveries:',
      ...lines,
      `${remediesOf(drifts)} (docs/topics.md), then start again.`,
    ].join('\n'),
  );
}

function remediesOf(drifts: readonly Drift[]): string {
  const areCopies = drifts.map(({ remedy }) => remedy === 'reassign');
  const remedies = [
    ...(areCopies.includes(false) ? [`Mend settings with \`${COMMAND} apply\``] : []),
    ...(areCopies.includes(true) ? ['Add copies with kafka-reassign-partitions.sh'] : []),
  ];
  return remedies.join('. ');
}

function describe(drift: Drift | undefined): string {
  if (!drift) return '';
  const { topic, setting, value, wanted } = drift;
  return `${topic} has ${setting}=${value}, wanted ${wanted}`;
}

function openGauges(registry: Registry): { checked: Gauge; differing: Gauge } {
  const registers = [registry];
  return {
    checked: new Gauge({
      name: 'posthorn_kafka_topics_checked',
      help: 'Topics whose settings were compared at the start; 0 when this process may not read them.',
      registers,
    }),
    differing: new Gauge({
      name: 'posthorn_kafka_topic_settings_differing',
      help: 'Settings of topics that differed from the contract at the start (docs/topics.md).',
      registers,
    }),
  };
}
