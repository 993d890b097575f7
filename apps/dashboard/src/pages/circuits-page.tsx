import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { Schemas } from '../api/client.ts';
import { circuitsQuery } from '../api/overview.ts';
import { AppSelect, FilterBar } from '../parts/filters.tsx';
import { Page, Section } from '../parts/page.tsx';
import { Empty, QueryView } from '../parts/states.tsx';
import { Status } from '../parts/status.tsx';
import { type Column, Rows, WIDTHS } from '../parts/table.tsx';
import { countText } from '../parts/time-words.ts';
import { CodeBlock, When } from '../parts/values.tsx';
import { useRights, useSession } from '../session/session-context.ts';
import { UrlLink } from './names.tsx';

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
        <FilterBar isFiltered={appId !== undefined} clear={() => void navigate({ search: {} })}>
          <AppSelect
            value={appId ?? ''}
            noneLabel="All apps"
            onChange={(chosen) => void navigate({ search: { appId: chosen || undefined } })}
          />
        </FilterBar>
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
    cell: ({ webhookId, url }) => <UrlLink webhookId={webhookId} url={url} />,
  },
  {
    name: 'Circuit',
    width: WIDTHS.status,
    cell: ({ circuit }) => (
      <Status tone={circuit === 'open' ? 'bad' : 'warning'}>
        {circuit === 'open' ? 'open' : 'half open'}
      </Status>
    ),
  },
  {
    name: 'Since',
    width: WIDTHS.time,
    cell: ({ since }) => <When at={since} />,
  },
  {
    name: 'Next attempt',
    width: 15,
    // The time of a half-open one has come: it waits for a delivery that is due.
    cell: ({ circuit, probeAt }) =>
      circuit === 'open' ? <When at={probeAt} /> : 'with the next delivery that is due; it decides',
  },
];

const REPLAY = 'npm run admin -- dead-letters replay --webhook wh_…';

const DEAD_LETTERS = [
  [
    'How many came in the last day, in Prometheus',
    'sum by (reason) (increase(posthorn_dead_letter_records_total[24h]))',
  ],
  ['List the newest', 'npm run admin -- dead-letters list --limit 1000'],
  ['Say what a replay would do', `${REPLAY} --dry-run`],
  ['Replay', REPLAY],
] as const;

const SERVICES = [
  ['Which services are up, in Prometheus', 'up{job=~"posthorn.*"}'],
  [
    'How old the oldest message is that waits for Kafka',
    'max(posthorn_unpublished_oldest_seconds)',
  ],
  [
    'How old the oldest record is that waits for a service',
    'max by (group, topic) (posthorn_oldest_ready_age_seconds)',
  ],
] as const;

/**
 * Dead letters are of the installation, not of a company: some are records that nobody can read, so nobody knows whose
 * they are. So no API key may see them, and this page says how an operator does.
 */
function DeadLetters() {
  return (
    <Section title="Dead letters">
      <Text size="sm">
        Records that cannot be processed further, and the last failure of exhausted deliveries. They
        are of the whole installation: nobody can tell whose an unreadable one is. So they are not
        shown here. An operator lists and replays them with the administration command. What ended
        exhausted in your company is in the messages, and is sent again from there.
      </Text>
      <Commands commands={DEAD_LETTERS} />
    </Section>
  );
}

/** All companies share them, so what they do is told to the operator alone, by metrics and alerts. */
function Services() {
  return (
    <Section title="Services">
      <Text size="sm">
        All companies share the services. An operator sees how they do in Prometheus and on the
        dashboards for Grafana that come with Posthorn, and alerts tell of what goes wrong.
      </Text>
      <Commands commands={SERVICES} />
    </Section>
  );
}

function Commands({ commands }: { commands: readonly (readonly [string, string])[] }) {
  return commands.map(([name, text]) => (
    <div key={name}>
      <Text size="sm" mb="xs">
        {name}
      </Text>
      <CodeBlock name={name} text={text} />
    </div>
  ));
}
