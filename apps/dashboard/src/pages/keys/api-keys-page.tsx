import { Group, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { answerOf, api, type Schemas } from '../../api/client.ts';
import { apiKeysQuery } from '../../api/queries.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Copyable } from '../../parts/copy/copyable.tsx';
import { Page } from '../../parts/page.tsx';
import { QueryView } from '../../parts/query-view.tsx';
import { Rows, type Column } from '../../parts/rows.tsx';
import { Empty } from '../../parts/states.tsx';
import { When } from '../../parts/time/when.tsx';
import { useRights, useSession } from '../../session/session-context.ts';
import { CreateKey } from './create-key.tsx';
import { RotateKey } from './rotate-key.tsx';

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
            <Rows
              caption="API keys"
              columns={canManageKeys ? [...COLUMNS, CHANGE] : COLUMNS}
              rows={keys}
              keyOf={({ id }) => id}
            />
          )
        }
      </QueryView>
    </Page>
  );
}

type Key = Schemas['ApiKey'];

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
      perform={() =>
        answerOf(api.DELETE('/api/v1/api-keys/{keyId}', { params: { path: { keyId: id } } }))
      }
      onDone={() => void client.invalidateQueries({ queryKey: ['api-keys'] })}
    />
  );
}
