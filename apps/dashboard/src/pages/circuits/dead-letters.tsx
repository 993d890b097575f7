import { Text } from '@mantine/core';
import { CodeBlock } from '../../parts/copy/code-block.tsx';
import { Section } from '../../parts/page.tsx';

const REPLAY = 'npm run admin -- dead-letters replay --webhook wh_…';

const COMMANDS = [
  [
    'How many came in the last day, in Prometheus',
    'sum by (reason) (increase(posthorn_dead_letter_records_total[24h]))',
  ],
  ['List the newest', 'npm run admin -- dead-letters list --limit 1000'],
  ['Say what a replay would do', `${REPLAY} --dry-run`],
  ['Replay', REPLAY],
] as const;

/**
 * Dead letters are of the installation, not of a company: some are records that nobody can read, so nobody knows whose
 * they are. So no API key may see them, and this page says how an operator does.
 */
export function DeadLetters() {
  return (
    <Section title="Dead letters">
      <Text size="sm">
        Records that cannot be processed further. They are of the whole installation: nobody can
        tell whose an unreadable one is. So they are not shown here. An operator lists and replays
        them with the administration command. What ended exhausted in your company is in the
        messages, and is sent again from there.
      </Text>
      {COMMANDS.map(([name, text]) => (
        <div key={name}>
          <Text size="sm" mb="xs">
            {name}
          </Text>
          <CodeBlock name={name} text={text} />
        </div>
      ))}
    </Section>
  );
}
