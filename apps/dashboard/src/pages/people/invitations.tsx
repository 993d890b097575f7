import { Button, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type SyntheticEvent, useState } from 'react';
import { given } from '../../api/client.ts';
import {
  invitationsQuery,
  invite,
  type OpenInvitation,
  revokeInvitation,
  ROLE_CHOICES,
} from '../../api/people.ts';
import type { Role } from '../../api/session.ts';
import { Confirm, Dialog } from '../../parts/dialog.tsx';
import { Section } from '../../parts/page.tsx';
import { Failed, QueryView } from '../../parts/states.tsx';
import { type Column, Rows, WIDTHS } from '../../parts/table.tsx';
import { Copyable, Cut, When } from '../../parts/values.tsx';
import { WhoseId } from '../names.tsx';

/** The invitations that nobody has used yet. */
export function Invitations() {
  const query = useQuery(invitationsQuery);
  return (
    <Section title="Open invitations">
      <QueryView query={query} what="the invitations">
        {(invitations) =>
          invitations.length === 0 ? (
            <Text size="sm">
              None is open. An invitation is in this list until it is used, expires or is revoked.
            </Text>
          ) : (
            <Rows
              caption="Open invitations"
              columns={COLUMNS}
              rows={invitations}
              keyOf={({ id }) => id}
            />
          )
        }
      </QueryView>
    </Section>
  );
}

const COLUMNS: readonly Column<OpenInvitation>[] = [
  {
    name: 'For',
    cell: ({ id, name, email }) => (
      <>
        <Cut text={name ?? email ?? 'whoever has its URL'} />
        {name !== null && email !== null && <Cut text={email} look="small" />}
        <Copyable text={id} name="invitation id" />
      </>
    ),
  },
  { name: 'Role', width: 7, cell: ({ role }) => role },
  { name: 'Made by', width: 11, cell: ({ by }) => <WhoseId id={by} /> },
  { name: 'Expires', width: WIDTHS.time, cell: ({ expiresAt }) => <When at={expiresAt} /> },
  { name: 'Change', width: 7, cell: (invitation) => <Revoke invitation={invitation} /> },
];

function Revoke({ invitation: { id, name, email } }: { invitation: OpenInvitation }) {
  const client = useQueryClient();
  return (
    <Confirm
      action="Revoke"
      size="xs"
      about={{ kind: 'invitation', name: name ?? email ?? id }}
      consequence="Its URL opens nothing any more."
      perform={() => revokeInvitation(id)}
      onDone={() => void client.invalidateQueries({ queryKey: ['people'] })}
    />
  );
}

/** A button with the form that makes an invitation, and then shows its URL once. */
export function Invite() {
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const create = useMutation({
    mutationFn: (form: FormData) => invite(bodyOf(form)),
    onSuccess: () => client.invalidateQueries({ queryKey: ['people'] }),
  });
  const close = (): void => {
    setOpen(false);
  };
  return (
    <>
      <Button
        onClick={() => {
          create.reset();
          setOpen(true);
        }}
      >
        Invite a person
      </Button>
      <Dialog title="Invite a person" isOpen={isOpen} close={close}>
        {create.data === undefined ? (
          <InvitationForm error={create.error} isBusy={create.isPending} create={create.mutate} />
        ) : (
          <Made url={create.data.url ?? ''} />
        )}
      </Dialog>
    </>
  );
}

/** The only time that the URL is shown. */
function Made({ url }: { url: string }) {
  return (
    <Stack>
      <Text>
        Send this URL to the person. It is shown once, and opens once: whoever signs in with it gets
        the role.
      </Text>
      <Copyable text={url} name="URL of the invitation" />
    </Stack>
  );
}

const LIFETIMES = [
  { value: '3600', label: 'in an hour' },
  { value: '86400', label: 'in a day' },
  { value: '604800', label: 'in 7 days' },
];

interface InvitationFormProps {
  error: Error | null;
  isBusy: boolean;
  create: (form: FormData) => void;
}

function InvitationForm({ error, isBusy, create }: InvitationFormProps) {
  const submit = (event: SyntheticEvent<HTMLFormElement>): void => {
    event.preventDefault();
    create(new FormData(event.currentTarget));
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        {error !== null && <Failed error={error} what="make the invitation" />}
        <NativeSelect name="role" label="Role" data={ROLE_CHOICES} data-autofocus />
        <TextInput name="name" label="Name" description="To find it in the list" />
        <TextInput
          name="email"
          type="email"
          label="E-mail"
          description="To find it in the list: nothing is sent, and any account of the issuer may use the URL"
        />
        <NativeSelect
          name="expiresInSeconds"
          label="It expires"
          data={LIFETIMES}
          defaultValue="86400"
        />
        <Group justify="flex-end">
          <Button type="submit" loading={isBusy}>
            Make the invitation
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function bodyOf(form: FormData): Parameters<typeof invite>[0] {
  return {
    role: textOf(form, 'role') as Role,
    expiresInSeconds: Number(textOf(form, 'expiresInSeconds')),
    ...given({ name: textOf(form, 'name'), email: textOf(form, 'email') }),
  };
}

function textOf(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === 'string' ? value.trim() : '';
}
