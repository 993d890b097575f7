import {
  Button,
  Checkbox,
  FileInput,
  Group,
  NativeSelect,
  Stack,
  Text,
  TextInput,
} from '@mantine/core';
import { useMutation, type UseMutationResult, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/client.ts';
import { makePortalLink } from '../../api/projects.ts';
import type { Capability } from '../../api/session.ts';
import { valueTo } from '../../parts/form-fields.ts';
import { Section } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { Copyable, When } from '../../parts/values.tsx';
import {
  bodyOf,
  lifetimeText,
  type LinkDraft,
  type LinkFieldsProps,
  MINUTES,
  previewOf,
  problemsOf,
} from './portal-link-rules.ts';
import { PortalLinks } from './portal-links.tsx';
import styles from './projects.module.css';

const FIRST: LinkDraft = {
  capabilities: ['view', 'resend'],
  minutes: '60',
  path: '',
  name: '',
  logoUrl: '',
  primaryColor: '',
  colorScheme: 'auto',
};

/** Makes links that open the portal of an app, for customers of the platform, and revokes them. */
export function Portal({ appId, appName }: { appId: string; appName: string }) {
  const client = useQueryClient();
  const made = useMutation({
    mutationFn: (draft: LinkDraft) => makePortalLink(appId, bodyOf(draft)),
    onSuccess: () => client.invalidateQueries({ queryKey: ['portal-links'] }),
  });
  return (
    <>
      <MakeLink appName={appName} made={made} />
      <PortalLinks
        appId={appId}
        onRevoked={(linkId) => {
          if (linkId === made.data?.id) made.reset();
        }}
      />
    </>
  );
}

interface MakeLinkProps {
  appName: string;
  made: UseMutationResult<Schemas['PortalLink'], Error, LinkDraft>;
}

function MakeLink({ appName, made }: MakeLinkProps) {
  const [draft, setDraft] = useState(FIRST);
  const problems = problemsOf(draft);
  const isRight = Object.keys(problems).length === 0;
  return (
    <Section title="Portal">
      <Text size="sm">
        A link opens the webhooks, messages and attempts of this app, and nothing else, for whoever
        has it. It works once. If you signed in with an API key, it also ends with that key.
      </Text>
      <LinkFields
        draft={draft}
        problems={problems}
        change={(changes) => {
          setDraft({ ...draft, ...changes });
        }}
      />
      {isRight && (
        <Text size="sm" role="status">
          {previewOf(draft, appName)}
        </Text>
      )}
      <Group>
        <Button
          variant="default"
          loading={made.isPending}
          disabled={!isRight}
          onClick={() => {
            made.mutate(draft);
          }}
        >
          Make a portal link
        </Button>
      </Group>
      {made.error !== null && <Failed error={made.error} what="make the link" />}
      {made.data !== undefined && <MadeLink key={made.data.id} link={made.data} />}
    </Section>
  );
}

function MadeLink({ link: { url, expiresAt } }: { link: Schemas['PortalLink'] }) {
  return (
    <div role="status">
      <Copyable text={url ?? ''} name="portal link" />
      <Text size="sm">
        It expires <When at={expiresAt} />, and is not shown again.
      </Text>
    </div>
  );
}

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

function LinkFields({ draft, problems, change }: LinkFieldsProps) {
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
          description={`60 is an hour, ${MINUTES.max} are ${lifetimeText(MINUTES.max)}`}
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

const TYPES = 'image/png,image/jpeg,image/webp,image/svg+xml';

/** A logo by its URL, or a file that goes with the theme: then no page has to be asked for it. */
function LogoField({ draft: { logoUrl }, problems, change }: LinkFieldsProps) {
  const isFile = logoUrl.startsWith('data:');
  const [file, setFile] = useState<File | null>(null);
  const choose = (chosen: File | null): void => {
    setFile(chosen);
    if (chosen === null) {
      change({ logoUrl: '' });
      return;
    }
    const reader = new FileReader();
    reader.onload = () => {
      if (typeof reader.result === 'string') change({ logoUrl: reader.result });
    };
    reader.readAsDataURL(chosen);
  };
  return (
    <Group align="start" mt="md">
      <TextInput
        className={styles.logoUrl}
        label="Logo"
        description="An https URL at one of the origins of “Portal in a frame”, or a file"
        placeholder="https://app.example.com/logo.svg"
        value={isFile ? '' : logoUrl}
        error={problems.logoUrl}
        onChange={valueTo((url) => {
          change({ logoUrl: url.trim() });
        })}
      />
      <FileInput
        className={styles.file}
        label="Logo file"
        description="At most 48 kB; it goes with the link"
        placeholder="Choose an image"
        accept={TYPES}
        clearable
        clearButtonProps={{ 'aria-label': 'Remove the logo file' }}
        value={isFile ? file : null}
        onChange={choose}
      />
      {isFile && problems.logoUrl === undefined && (
        <img src={logoUrl} alt="The logo" className={styles.logo} />
      )}
    </Group>
  );
}
