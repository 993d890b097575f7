import { NativeSelect, Text } from '@mantine/core';
import { PROJECT_RULES } from '@posthorn/client/rules';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { Schemas } from '../../api/client.ts';
import { setPolicy } from '../../api/event-types.ts';
import { valueTo } from '../../parts/form-fields.ts';
import { Section } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { useRights } from '../../session/session-context.ts';
import styles from './event-types.module.css';

type PolicyName = Schemas['Project']['eventTypePolicy'];

const WORDS: Record<PolicyName, { label: string; effect: string }> = {
  open: {
    label: 'Open: every message is accepted',
    effect: 'The catalogue describes messages and decides nothing.',
  },
  known: {
    label: 'Known: only the types of the catalogue',
    effect: 'A message without a type of this catalogue, or with an archived one, is refused.',
  },
  validated: {
    label: 'Validated: their payloads meet the schema too',
    effect: 'A message whose payload does not meet the schema of its type is refused too.',
  },
};

/** Which messages of the project are accepted. */
export function Policy({ project }: { project: Schemas['Project'] }) {
  const { canManageProjects } = useRights();
  const client = useQueryClient();
  const save = useMutation({
    mutationFn: (policy: PolicyName) => setPolicy(project.id, policy),
    onSettled: () => client.invalidateQueries({ queryKey: ['projects'] }),
  });
  const shown = save.isPending ? save.variables : project.eventTypePolicy;
  const { effect } = WORDS[shown];
  return (
    <Section title="Messages that are accepted">
      {save.error !== null && <Failed error={save.error} what="change the policy" />}
      {canManageProjects ? (
        <NativeSelect
          aria-label="Policy of the project"
          className={styles.policy ?? ''}
          data={PROJECT_RULES.eventTypePolicy.choices.map((value) => ({
            value,
            label: WORDS[value].label,
          }))}
          value={shown}
          disabled={save.isPending}
          onChange={valueTo((chosen) => {
            save.mutate(chosen as PolicyName);
          })}
        />
      ) : (
        <Text>{WORDS[shown].label}</Text>
      )}
      <Text size="sm" role="status">
        {effect} Gateways use a change within two seconds.
      </Text>
    </Section>
  );
}
