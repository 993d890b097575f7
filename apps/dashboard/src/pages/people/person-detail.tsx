import { Group, NativeSelect, Stack, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import {
  changePerson,
  endSessions,
  personQuery,
  removePerson,
  ROLE_CHOICES,
  ROLE_WORDS,
} from '../../api/people.ts';
import type { Schemas } from '../../api/client.ts';
import type { Role } from '../../api/session.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Facts } from '../../parts/figures.tsx';
import { valueTo } from '../../parts/form-fields.ts';
import { Section } from '../../parts/page.tsx';
import { Failed, QueryView } from '../../parts/states.tsx';
import { type Column, Rows, WIDTHS } from '../../parts/table.tsx';
import { Copyable, Cut, Expandable, None, When } from '../../parts/values.tsx';

type Person = Schemas['PersonWithSessions'];
type PersonSession = Person['sessions'][number];

interface PersonDetailProps {
  personId: string;
  onRemoved: () => void;
}

/** One person: role, sessions, and the ways to end what they may do. */
export function PersonDetail({ personId, onRemoved }: PersonDetailProps) {
  const query = useQuery(personQuery(personId));
  return (
    <QueryView query={query} what="the person">
      {(person) => (
        <Stack>
          <PersonFacts person={person} />
          <RoleField person={person} />
          <Actions person={person} onRemoved={onRemoved} />
          <Sessions person={person} />
        </Stack>
      )}
    </QueryView>
  );
}

function PersonFacts({ person }: { person: Person }) {
  const { id, name, email, source, role, createdAt, lastSignedInAt, apiKeys } = person;
  return (
    <Facts
      facts={[
        ['Name', name ?? <None key="name" />],
        ['E-mail', email ?? <None key="email" />],
        ['Id', <Copyable key="id" text={id} />],
        ['Role', `${role}: ${ROLE_WORDS[role]}`],
        ['By', source === 'group' ? 'a group of the issuer' : 'an invitation'],
        ['First signed in', <When key="first" at={createdAt} />],
        ['Last signed in', <When key="last" at={lastSignedInAt} />],
        ['API keys made', apiKeys === 0 ? 0 : <KeysMade key="keys" id={id} count={apiKeys} />],
      ]}
    />
  );
}

function KeysMade({ id, count }: { id: string; count: number }) {
  return (
    <Link to="/api-keys" search={{ createdBy: id }} aria-label={`${count}: show the API keys`}>
      {count}
    </Link>
  );
}

/** A role by a group changes with the groups: here only that of an invitation. */
function RoleField({ person: { id, role, source } }: { person: Person }) {
  const refresh = useRefresh();
  const change = useMutation({
    mutationFn: (next: Role) => changePerson(id, { role: next }),
    onSuccess: refresh,
  });
  if (source === 'group') {
    return (
      <Text size="sm">The role follows the groups that the issuer names at each sign-in.</Text>
    );
  }
  return (
    <>
      {change.error !== null && <Failed error={change.error} what="change the role" />}
      <NativeSelect
        label="Role of the invitation"
        description="A change ends the sessions of this person"
        data={ROLE_CHOICES}
        value={role}
        disabled={change.isPending}
        onChange={valueTo((next) => {
          change.mutate(next as Role);
        })}
      />
    </>
  );
}

function Actions({ person, onRemoved }: { person: Person; onRemoved: () => void }) {
  const { id, disabled } = person;
  const name = person.name ?? id;
  const refresh = useRefresh();
  const client = useQueryClient();
  return (
    <Group>
      <Confirm
        action={disabled ? 'Allow again' : 'Disable'}
        about={{ kind: 'person', name }}
        isDangerous={!disabled}
        consequence={disabled ? 'This person can sign in again.' : whenDisabled(person)}
        perform={() => changePerson(id, { disabled: !disabled })}
        onDone={refresh}
      />
      <Confirm
        action="Remove"
        about={{ kind: 'person', name }}
        consequence="Every session ends within two seconds, and name and e-mail address are forgotten. A group of the issuer lets this person in again, as a new one."
        perform={() => removePerson(id)}
        onDone={() => {
          onRemoved();
          client.removeQueries({ queryKey: personQuery(id).queryKey });
          refresh();
        }}
      />
    </Group>
  );
}

function whenDisabled({ apiKeys }: Person): string {
  const ends = 'Every session ends within two seconds, and the next sign-in is refused.';
  if (apiKeys === 0) return ends;
  const keys = apiKeys === 1 ? 'One API key' : `${apiKeys} API keys`;
  return `${ends} ${keys} that this person made still work: revoke them on the page of API keys.`;
}

function Sessions({ person: { id, sessions } }: { person: Person }) {
  const refresh = useRefresh();
  return (
    <Section
      title="Sessions"
      actions={
        sessions.length > 0 && (
          <Confirm
            action="End all sessions"
            size="xs"
            consequence="This person is signed out everywhere within two seconds, and may sign in again."
            perform={() => endSessions(id)}
            onDone={refresh}
          />
        )
      }
    >
      {sessions.length === 0 ? (
        <Text size="sm">This person is not signed in.</Text>
      ) : (
        <Rows
          caption="Sessions"
          columns={[...COLUMNS, endColumn(id, refresh)]}
          rows={sessions}
          keyOf={(session) => session.id}
        />
      )}
    </Section>
  );
}

const COLUMNS: readonly Column<PersonSession>[] = [
  {
    name: 'From',
    cell: ({ clientAddress, userAgent }) => (
      <>
        {clientAddress === null ? <None /> : <Cut text={clientAddress} />}
        {userAgent !== null && <Expandable text={userAgent} />}
      </>
    ),
  },
  { name: 'Began', width: WIDTHS.time, cell: ({ startedAt }) => <When at={startedAt} /> },
  { name: 'Last used', width: WIDTHS.time, cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
  { name: 'Ends', width: WIDTHS.time, cell: ({ expiresAt }) => <When at={expiresAt} /> },
];

function endColumn(personId: string, onEnded: () => void): Column<PersonSession> {
  return {
    name: 'Change',
    width: 6,
    cell: ({ id }) => (
      <Confirm
        action="End"
        size="xs"
        about={{ kind: 'session', name: id }}
        consequence="This session ends within two seconds."
        perform={() => endSessions(personId, id)}
        onDone={onEnded}
      />
    ),
  };
}

function useRefresh(): () => void {
  const client = useQueryClient();
  return () => void client.invalidateQueries({ queryKey: ['people'] });
}
