import { Checkbox, Group, NativeSelect, Stack, TextInput } from '@mantine/core';
import type { Capability } from '../../api/session.ts';
import { valueTo } from '../../parts/form-fields.ts';
import { LogoField } from './logo-field.tsx';
import type { LinkDraft, LinkFieldsProps } from './portal-link-rules.ts';
import styles from './projects.module.css';

const CAPABILITIES: readonly { value: Capability; label: string }[] = [
  { value: 'view', label: 'See webhooks, messages and attempts' },
  { value: 'manage', label: 'Create, change, test and delete webhooks' },
  { value: 'secrets', label: 'See secrets' },
  { value: 'resend', label: 'Send failed deliveries again' },
  { value: 'controlDeliveries', label: 'Hold, cancel and replay deliveries' },
];

const SCHEMES = [
  { value: 'auto', label: 'As the browser prefers' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
];

export function LinkFields({ draft, problems, change }: LinkFieldsProps) {
  return (
    <Stack>
      <Checkbox.Group
        label="Whoever opens it may"
        value={draft.capabilities}
        onChange={(capabilities) => {
          change({ capabilities });
        }}
      >
        <Stack gap="xs" mt="xs">
          {CAPABILITIES.map(({ value, label }) => (
            <Checkbox key={value} value={value} label={label} disabled={value === 'view'} />
          ))}
        </Stack>
      </Checkbox.Group>
      <Group align="start">
        <TextInput
          label="For how many minutes"
          description="60 is an hour, 10080 are 7 days"
          inputMode="numeric"
          value={draft.minutes}
          error={problems.minutes}
          onChange={valueTo((minutes) => {
            change({ minutes });
          })}
        />
        <TextInput
          label="First page"
          description="A path of the portal"
          placeholder="/webhooks"
          value={draft.path}
          error={problems.path}
          onChange={valueTo((path) => {
            change({ path });
          })}
        />
      </Group>
      <ThemeFields draft={draft} problems={problems} change={change} />
    </Stack>
  );
}

function ThemeFields({ draft, problems, change }: LinkFieldsProps) {
  return (
    <fieldset className={styles.theme}>
      <legend>How the portal looks</legend>
      <Group align="start">
        <TextInput
          label="Name above the pages"
          placeholder="The name of the app"
          value={draft.name}
          error={problems.name}
          onChange={valueTo((name) => {
            change({ name });
          })}
        />
        <TextInput
          label="Primary colour"
          placeholder="#1c7ed6"
          value={draft.primaryColor}
          error={problems.primaryColor}
          onChange={valueTo((primaryColor) => {
            change({ primaryColor });
          })}
        />
        <NativeSelect
          label="Light or dark"
          data={SCHEMES}
          value={draft.colorScheme}
          onChange={valueTo((scheme) => {
            change({ colorScheme: scheme as LinkDraft['colorScheme'] });
          })}
        />
      </Group>
      <LogoField draft={draft} problems={problems} change={change} />
    </fieldset>
  );
}
