import { Text } from '@mantine/core';
import { Section } from '../../parts/page.tsx';
import { CodeBlock } from '../../parts/values.tsx';

const REPLAY = 'npm run admin -- dead-letters replay --webhook wh_…';

const DEAD_LETTERS = [
  [
    'How many came in the last day, in Prometheus',
    'sum by (reason) (increase(posthorn_dead_letter_records_total[24h]))',
  ],
  ['List the newest', 'npm run admin -- dead-letters list --limit 1000'],
  ['Say what a replay would do', `${REPLAY} --dry-run`],
  ['Replay', REPLAY],
] as const;

const SERVICES = [
  ['Which services are up, in Prometheus', 'up{job=~"posthorn.*"}'],
  [
    'How old the oldest message is that waits for Kafka',
    'max(posthorn_unpublished_oldest_seconds)',
  ],
  [
    'How old the oldest record is that waits for a service',
    'max by (group, topic) (posthorn_oldest_ready_age_seconds)',
  ],
] as const;

/**
 * Dead letters are of the installation, not of a company: some are records that nobody can read, so nobody knows whose
 * they are. So no API key may see them, and this page says how an operator does.
 */
export function DeadLetters() {
  return (
    <Section title="Dead letters">
      <Text size="sm">
        Records that cannot be processed further, and the last failure of exhausted deliveries. They
        are of the whole installation: nobody can tell whose an unreadable one is. So they are not
        shown here. An operator lists and replays them with the administration command. What ended
        exhausted in your company is in the messages, and is sent again from there.
      </Text>
      <Commands commands={DEAD_LETTERS} />
    </Section>
  );
}

/** All companies share them, so what they do is told to the operator alone, by metrics and alerts. */
export function Services() {
  return (
    <Section title="Services">
      <Text size="sm">
        All companies share the services. An operator sees how they do in Prometheus and on the
        dashboards for Grafana that come with Posthorn, and alerts tell of what goes wrong.
      </Text>
      <Commands commands={SERVICES} />
    </Section>
  );
}

function Commands({ commands }: { commands: readonly (readonly [string, string])[] }) {
  return commands.map(([name, text]) => (
    <div key={name}>
      <Text size="sm" mb="xs">
        {name}
      </Text>
      <CodeBlock name={name} text={text} />
    </div>
  ));
}
