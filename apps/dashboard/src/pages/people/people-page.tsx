import { Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { type Person, peopleQuery } from '../../api/people.ts';
import { SidePanel } from '../../parts/dialog.tsx';
import { Page, Section } from '../../parts/page.tsx';
import { Empty, QueryView, ShowMore } from '../../parts/states.tsx';
import { Status } from '../../parts/status.tsx';
import { type Column, Rows, WIDTHS } from '../../parts/table.tsx';
import { Cut, When } from '../../parts/values.tsx';
import { useSession } from '../../session/session-context.ts';
import { Groups } from './groups.tsx';
import { Invitations, Invite } from './invitations.tsx';
import { PersonDetail } from './person-detail.tsx';

const route = getRouteApi('/people');

/** Who comes in, and why: by the groups of the issuer, or by an invitation. */
export function PeoplePage() {
  const { open } = route.useSearch();
  const navigate = route.useNavigate();
  const close = (): void => {
    void navigate({ search: {} });
  };
  return (
    <Page title="People" actions={<Invite />}>
      <People />
      <Invitations />
      <Groups />
      <SidePanel title="Person" isOpen={open !== undefined} close={close}>
        {open !== undefined && <PersonDetail personId={open} onRemoved={close} />}
      </SidePanel>
    </Page>
  );
}

function People() {
  const query = useInfiniteQuery(peopleQuery);
  return (
    <Section title="Who has signed in">
      <QueryView query={query} what="the people">
        {({ pages }) => {
          const people = pages.flat();
          return people.length === 0 ? (
            <Empty title="Nobody has signed in yet">
              <Text>Give the groups of your issuer roles below, or invite somebody.</Text>
            </Empty>
          ) : (
            <Rows caption="People" columns={COLUMNS} rows={people} keyOf={({ id }) => id} />
          );
        }}
      </QueryView>
      <ShowMore query={query}>Show more people</ShowMore>
    </Section>
  );
}

const COLUMNS: readonly Column<Person>[] = [
  { name: 'Person', cell: (person) => <PersonLink person={person} /> },
  { name: 'Role', width: 7, cell: ({ role }) => role },
  { name: 'By', width: 8, cell: ({ source }) => SOURCE_WORDS[source] },
  { name: 'State', width: WIDTHS.status, cell: ({ disabled }) => <State disabled={disabled} /> },
  {
    name: 'Signed in',
    width: WIDTHS.time,
    cell: ({ lastSignedInAt }) => <When at={lastSignedInAt} />,
  },
];

const SOURCE_WORDS: Record<Person['source'], string> = {
  group: 'a group',
  invitation: 'an invitation',
};

function State({ disabled }: { disabled: boolean }) {
  return <Status tone={disabled ? 'off' : 'good'}>{disabled ? 'disabled' : 'may sign in'}</Status>;
}

function PersonLink({ person: { id, name, email } }: { person: Person }) {
  const session = useSession();
  return (
    <>
      <Link to="/people" search={{ open: id }}>
        <Cut text={name ?? id} />
      </Link>
      {session.person?.id === id && <Text size="xs">(you)</Text>}
      {email !== null && <Cut text={email} look="small" />}
    </>
  );
}
