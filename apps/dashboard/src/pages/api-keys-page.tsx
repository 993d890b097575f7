import { Group, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { apiKeysQuery } from '../api/api-keys.ts';
import { answerOf, api, type Schemas } from '../api/client.ts';
import type { FoundApp } from '../api/projects.ts';
import { Confirm } from '../parts/dialog.tsx';
import { FilterBar, FilterInput } from '../parts/filters.tsx';
import { Page, Section } from '../parts/page.tsx';
import { Empty, QueryView } from '../parts/states.tsx';
import { type Column, Rows, WIDTHS } from '../parts/table.tsx';
import { None, When } from '../parts/values.tsx';
import { useRights, useSession } from '../session/session-context.ts';
import { CreateKey, RotateKey } from './api-key-forms.tsx';
import { AppLink, useApps, WhoseId } from './names.tsx';

const route = getRouteApi('/api-keys');

export function ApiKeysPage() {
  const { createdBy } = route.useSearch();
  const query = useQuery(apiKeysQuery(createdBy));
  const { canManageKeys } = useRights();
  return (
    <Page title="API keys" actions={canManageKeys && <CreateKey />}>
      {createdBy !== undefined && <MakerFilter createdBy={createdBy} />}
      <QueryView query={query} what="the API keys">
        {(keys) =>
          keys.length === 0 ? (
            <NoKeys isFiltered={createdBy !== undefined} />
          ) : (
            <KeysByMaker keys={keys} />
          )
        }
      </QueryView>
    </Page>
  );
}

function NoKeys({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="This person made no API key" />;
  return (
    <Empty title="There is no API key">
      <Text>Create one: programs send messages with it.</Text>
    </Empty>
  );
}

/** The page of a person leads here. */
function MakerFilter({ createdBy }: { createdBy: string }) {
  const navigate = route.useNavigate();
  const set = (id: string): void => {
    void navigate({ search: id === '' ? {} : { createdBy: id }, replace: true });
  };
  return (
    <FilterBar isFiltered clear={() => void navigate({ search: {} })}>
      <FilterInput label="Made by" placeholder="usr_…" value={createdBy} set={set} />
    </FilterBar>
  );
}

type Key = Schemas['ApiKey'];

/** Links make many, which nobody knows and which go by themselves: they stand apart. */
function KeysByMaker({ keys }: { keys: readonly Key[] }) {
  const { canManageKeys } = useRights();
  const apps = useApps(keys.map(({ appId }) => appId));
  const hasMakers = keys.some(({ createdBy }) => createdBy !== null);
  const columns = [
    ...columnsWith(apps),
    ...(hasMakers ? [MAKER] : []),
    ...(canManageKeys ? [CHANGE] : []),
  ];
  const ofLinks = keys.filter(({ ofLink }) => ofLink);
  const others = keys.filter(({ ofLink }) => !ofLink);
  return (
    <>
      {others.length > 0 && (
        <Rows caption="API keys" columns={columns} rows={others} keyOf={({ id }) => id} />
      )}
      {ofLinks.length > 0 && (
        <Section title="Of sign-in links and portal links">
          <Text size="sm">
            Nobody knows these keys. Each ends with its session or its link, and revoking it ends
            them.
          </Text>
          <Rows caption="Keys of links" columns={columns} rows={ofLinks} keyOf={({ id }) => id} />
        </Section>
      )}
    </>
  );
}

const columnsWith = (apps: ReadonlyMap<string, FoundApp>): readonly Column<Key>[] => [
  {
    name: 'Key',
    cell: ({ name, prefix, id }) => (
      <>
        <strong>{name}</strong> <OwnMark keyId={id} />
        <Text size="xs" c="dimmed" ff="monospace">
          {prefix}…
        </Text>
      </>
    ),
  },
  { name: 'May', width: 12, cell: ({ scopes }) => scopes.join(', ') },
  {
    name: 'Of',
    width: 11,
    cell: ({ appId }) =>
      appId === null ? 'the company' : <AppLink appId={appId} app={apps.get(appId)} />,
  },
  { name: 'Expires', width: WIDTHS.time, cell: ({ expiresAt }) => <When at={expiresAt} /> },
  { name: 'Last used', width: WIDTHS.time, cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
];

/** Keys stay when the person who made them leaves, so that they can be found. */
const MAKER: Column<Key> = {
  name: 'Made by',
  width: 11,
  cell: ({ createdBy }) => (createdBy === null ? <None /> : <WhoseId id={createdBy} />),
};

function OwnMark({ keyId }: { keyId: string }) {
  const { key } = useSession();
  return key.id === keyId ? <span>(yours)</span> : null;
}

const CHANGE: Column<Key> = {
  name: 'Change',
  width: 12,
  cell: (key) => (
    <Group gap="xs" wrap="nowrap">
      {!key.ofLink && <RotateKey apiKey={key} />}
      <Revoke apiKey={key} />
    </Group>
  ),
};

function Revoke({ apiKey: { id, name } }: { apiKey: Key }) {
  const client = useQueryClient();
  const { key } = useSession();
  const own = key.id === id ? ' This is the key of your session: you will be signed out.' : '';
  return (
    <Confirm
      action="Revoke"
      size="xs"
      about={{ kind: 'API key', name }}
      consequence={`Programs and sessions that use “${name}” are refused within seconds. It cannot be undone.${own}`}
      perform={() => answerOf(api.DELETE('/api-keys/{keyId}', { params: { path: { keyId: id } } }))}
      onDone={() => void client.invalidateQueries({ queryKey: ['api-keys'] })}
    />
  );
}
