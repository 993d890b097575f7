import { Group, Text } from '@mantine/core';
import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { answerOf, api, dataOf, type Schemas } from '../api/client.ts';
import { FRESH_MS } from '../api/query-client.ts';
import { Confirm } from '../parts/dialog.tsx';
import { Page, Section } from '../parts/page.tsx';
import { Empty, QueryView } from '../parts/states.tsx';
import { type Column, Rows } from '../parts/table.tsx';
import { Copyable, When } from '../parts/values.tsx';
import { useRights, useSession } from '../session/session-context.ts';
import { CreateKey, RotateKey } from './api-key-forms.tsx';

export function ApiKeysPage() {
  const query = useQuery(apiKeysQuery);
  const { canManageKeys } = useRights();
  return (
    <Page title="API keys" actions={canManageKeys && <CreateKey />}>
      <QueryView query={query} what="the API keys">
        {(keys) =>
          keys.length === 0 ? (
            <Empty title="There is no API key">
              <Text>Create one: programs send messages with it.</Text>
            </Empty>
          ) : (
            <KeysByMaker keys={keys} columns={canManageKeys ? [...COLUMNS, CHANGE] : COLUMNS} />
          )
        }
      </QueryView>
    </Page>
  );
}

type Key = Schemas['ApiKey'];

/** Links make many, which nobody knows and which go by themselves: they stand apart. */
function KeysByMaker({ keys, columns }: { keys: readonly Key[]; columns: readonly Column<Key>[] }) {
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

const COLUMNS: readonly Column<Key>[] = [
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
  { name: 'May', cell: ({ scopes }) => scopes.join(', ') },
  {
    name: 'Of',
    cell: ({ appId }) => (appId === null ? 'the company' : <Copyable text={appId} name="app id" />),
  },
  { name: 'Expires', cell: ({ expiresAt }) => <When at={expiresAt} /> },
  { name: 'Last used', cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
];

function OwnMark({ keyId }: { keyId: string }) {
  const { key } = useSession();
  return key.id === keyId ? <span>(yours)</span> : null;
}

const CHANGE: Column<Key> = {
  name: 'Change',
  cell: (key) => (
    <Group gap="xs">
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
      about={{ kind: 'API key', name }}
      consequence={`Programs and sessions that use “${name}” are refused within seconds. It cannot be undone.${own}`}
      perform={() => answerOf(api.DELETE('/api-keys/{keyId}', { params: { path: { keyId: id } } }))}
      onDone={() => void client.invalidateQueries({ queryKey: ['api-keys'] })}
    />
  );
}

const apiKeysQuery = queryOptions({
  queryKey: ['api-keys'],
  staleTime: FRESH_MS,
  queryFn: () => dataOf(api.GET('/api-keys', { params: { query: {} } })),
});
