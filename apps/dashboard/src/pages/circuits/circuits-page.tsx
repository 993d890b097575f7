import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { circuitsQuery } from '../../api/overview.ts';
import { AppSelect } from '../../parts/filters.tsx';
import { Page } from '../../parts/page.tsx';
import { Empty, QueryView } from '../../parts/states.tsx';
import { Status } from '../../parts/status.tsx';
import { type Column, Rows } from '../../parts/table.tsx';
import { countText } from '../../parts/time-words.ts';
import { When } from '../../parts/values.tsx';
import { useRights, useSession } from '../../session/session-context.ts';
import { DeadLetters, Services } from './for-operators.tsx';

const route = getRouteApi('/circuits');

export function CircuitsPage() {
  const { appId } = route.useSearch();
  const navigate = route.useNavigate();
  const { key } = useSession();
  const { canReadAudit } = useRights();
  const query = useQuery(circuitsQuery(appId));
  return (
    <Page title="Circuits">
      <Text size="sm">
        The circuit of an endpoint opens when most of its attempts failed for two minutes. Then it
        gets one attempt now and then, and the others wait without using up their schedule. A
        success closes it.
      </Text>
      {key.appId === null && (
        <AppSelect
          value={appId ?? ''}
          noneLabel="All apps"
          onChange={(chosen) => void navigate({ search: { appId: chosen || undefined } })}
        />
      )}
      <QueryView query={query} what="the open circuits">
        {(circuits) => <Circuits circuits={circuits} />}
      </QueryView>
      {canReadAudit && key.appId === null && (
        <>
          <DeadLetters />
          <Services />
        </>
      )}
    </Page>
  );
}

/** The API returns no more. */
const MOST = 1_000;

function Circuits({ circuits }: { circuits: Schemas['OpenCircuit'][] }) {
  if (circuits.length === 0) {
    return (
      <Empty title="No circuit is open">
        <Text>
          Every endpoint gets its attempts. What fails now and then is on the failures page.
        </Text>
      </Empty>
    );
  }
  return (
    <>
      <Text size="sm" role="status">
        {countText(circuits.length)}
        {circuits.length === MOST && ' or more'} open, the oldest first
      </Text>
      <Rows
        caption="Open circuits"
        columns={COLUMNS}
        rows={circuits}
        keyOf={({ webhookId }) => webhookId}
      />
    </>
  );
}

const COLUMNS: readonly Column<Schemas['OpenCircuit']>[] = [
  {
    name: 'Webhook',
    cell: ({ webhookId, url }) => (
      <Link to="/webhooks/$webhookId" params={{ webhookId }}>
        {url}
      </Link>
    ),
  },
  {
    name: 'Circuit',
    cell: ({ circuit }) => (
      <Status tone={circuit === 'open' ? 'bad' : 'warning'}>
        {circuit === 'open' ? 'open' : 'half open: the next attempt decides'}
      </Status>
    ),
  },
  {
    name: 'Since',
    cell: ({ since }) => <When at={since} />,
  },
  {
    name: 'Next attempt',
    // The time of a half-open one has come: it waits for a delivery that is due.
    cell: ({ circuit, probeAt }) =>
      circuit === 'open' ? <When at={probeAt} /> : 'with the next delivery that is due',
  },
];
