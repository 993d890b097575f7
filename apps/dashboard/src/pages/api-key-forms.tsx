import { Button, Checkbox, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { API_KEY_RULES } from '@posthorn/client/rules';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf, type Schemas } from '../api/client.ts';
import type { Scope } from '../api/session.ts';
import { Dialog } from '../parts/dialog.tsx';
import { AppSelect } from '../parts/filters.tsx';
import { valueTo } from '../parts/form-fields.ts';
import { Failed } from '../parts/states.tsx';
import { Copyable } from '../parts/values.tsx';
import { useSession } from '../session/session-context.ts';

const SCOPES: readonly { value: Scope; label: string }[] = [
  { value: 'messages:write', label: 'Send and resend messages' },
  { value: 'read', label: 'Read' },
  { value: 'webhooks:write', label: 'Change projects, apps and webhooks, and see secrets' },
  { value: 'keys:write', label: 'Make and revoke API keys' },
  { value: 'admin', label: 'Everything, and the audit log' },
];

const LIFETIMES = [
  { value: '', label: 'never' },
  { value: '7', label: 'in 7 days' },
  { value: '90', label: 'in 90 days' },
  { value: '365', label: 'in a year' },
];

const DAY_MS = 86_400_000;

export function CreateKey() {
  const [isOpen, setOpen] = useState(false);
  const client = useQueryClient();
  const create = useMutation({
    mutationFn: (body: Schemas['CreateApiKey']) => dataOf(api.POST('/api-keys', { body })),
    onSuccess: () => client.invalidateQueries({ queryKey: ['api-keys'] }),
  });
  return (
    <>
      <Button
        onClick={() => {
          create.reset();
          setOpen(true);
        }}
      >
        Create API key
      </Button>
      <Dialog
        title="Create an API key"
        isOpen={isOpen}
        close={() => {
          setOpen(false);
        }}
      >
        {create.data === undefined ? (
          <KeyForm error={create.error} isBusy={create.isPending} create={create.mutate} />
        ) : (
          <NewKey text={create.data.key ?? ''} />
        )}
      </Dialog>
    </>
  );
}

/** The only time that a key is shown. */
function NewKey({ text }: { text: string }) {
  return (
    <Stack>
      <Text>
        This is the key. It is shown once: copy it now, and keep it where secrets are kept.
      </Text>
      <Copyable text={text} name="API key" />
    </Stack>
  );
}

/** A key of one app makes keys of that app only. */
function OnlyApp({ appId, setAppId }: { appId: string; setAppId: (appId: string) => void }) {
  return (
    <>
      <AppSelect value={appId} onChange={setAppId} noneLabel="All apps of the company" />
      {appId !== '' && (
        <Text size="sm">
          It can do this in the chosen app only. Projects, apps and global webhooks it cannot
          change.
        </Text>
      )}
    </>
  );
}

function ScopeFields({ scopes, setScopes }: ScopeFieldsProps) {
  const { key } = useSession();
  const offered = SCOPES.filter(
    ({ value }) => key.scopes.includes('admin') || key.scopes.includes(value),
  );
  return (
    <Checkbox.Group label="It may" value={scopes} onChange={setScopes}>
      <Stack gap="xs" mt="xs">
        {offered.map(({ value, label }) => (
          <Checkbox key={value} value={value} label={label} description={value} />
        ))}
      </Stack>
    </Checkbox.Group>
  );
}

interface ScopeFieldsProps {
  scopes: string[];
  setScopes: (scopes: string[]) => void;
}

interface KeyFormProps {
  error: Error | null;
  isBusy: boolean;
  create: (body: Schemas['CreateApiKey']) => void;
}

function KeyForm({ error, isBusy, create }: KeyFormProps) {
  const { key } = useSession();
  const [scopes, setScopes] = useState<string[]>(['messages:write']);
  const [days, setDays] = useState('');
  const [appId, setAppId] = useState('');
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const name = new FormData(event.currentTarget).get('name');
        const expiresAt = new Date(Date.now() + Number(days) * DAY_MS).toISOString();
        create({
          name: typeof name === 'string' ? name : '',
          scopes: scopes as Scope[],
          ...(days !== '' && { expiresAt }),
          ...(appId !== '' && { appId }),
        });
      }}
    >
      <Stack>
        {error !== null && <Failed error={error} what="create the key" />}
        <TextInput
          name="name"
          label="Name"
          required
          maxLength={API_KEY_RULES.name.maxChars}
          data-autofocus
        />
        <ScopeFields scopes={scopes} setScopes={setScopes} />
        {key.appId === null && <OnlyApp appId={appId} setAppId={setAppId} />}
        <NativeSelect
          label="It expires"
          data={LIFETIMES}
          value={days}
          onChange={valueTo(setDays)}
        />
        <Group justify="flex-end">
          <Button type="submit" loading={isBusy} disabled={scopes.length === 0}>
            Create API key
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

const GRACES = [
  { value: '0', label: 'not at all: it is refused at once' },
  { value: '3600', label: 'for 1 hour' },
  { value: '86400', label: 'for 1 day' },
  { value: '604800', label: 'for 7 days' },
];

const A_DAY = '86400';

/** Makes a key with the same name and rights. The old one works beside it for a while. */
export function RotateKey({ apiKey: { id, name } }: { apiKey: Schemas['ApiKey'] }) {
  const [isOpen, setOpen] = useState(false);
  const rotate = useRotate(id);
  return (
    <>
      <Button
        size="xs"
        variant="default"
        aria-label={`Rotate ${name}`}
        onClick={() => {
          rotate.reset();
          setOpen(true);
        }}
      >
        Rotate
      </Button>
      <Dialog
        title={`Rotate “${name}”`}
        isOpen={isOpen}
        close={() => {
          setOpen(false);
        }}
      >
        {rotate.data !== undefined ? (
          <NewKey text={rotate.data.key ?? ''} />
        ) : (
          <Question rotate={rotate} />
        )}
      </Dialog>
    </>
  );
}

function useRotate(keyId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (graceSeconds: number) => {
      const params = { path: { keyId } };
      return dataOf(api.POST('/api-keys/{keyId}/rotate', { params, body: { graceSeconds } }));
    },
    onSuccess: () => client.invalidateQueries({ queryKey: ['api-keys'] }),
  });
}

function Question({ rotate }: { rotate: ReturnType<typeof useRotate> }) {
  const [grace, setGrace] = useState(A_DAY);
  return (
    <Stack>
      <Text>A new key with the same name and rights takes its place.</Text>
      {rotate.error !== null && <Failed error={rotate.error} what="rotate the key" />}
      <NativeSelect
        label="The old key still works"
        data={GRACES}
        value={grace}
        onChange={valueTo(setGrace)}
      />
      <Group justify="flex-end">
        <Button
          loading={rotate.isPending}
          onClick={() => {
            rotate.mutate(Number(grace));
          }}
        >
          Rotate the key
        </Button>
      </Group>
    </Stack>
  );
}
