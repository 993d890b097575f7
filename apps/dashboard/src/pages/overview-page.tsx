import { SegmentedControl, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schemas } from '../api/client.ts';
import { overviewQuery } from '../api/overview.ts';
import { projectsQuery } from '../api/projects.ts';
import { outcomeWords, type Range, RANGES } from '../api/words.ts';
import { type Figure, Figures, percentText, SuccessRatio } from '../parts/figures.tsx';
import { LinkButton, Page, Section } from '../parts/page.tsx';
import { Empty, QueryView } from '../parts/states.tsx';
import { type Column, Rows, WIDTHS } from '../parts/table.tsx';
import { countText, durationText } from '../parts/time-words.ts';
import { Hour, When } from '../parts/values.tsx';
import { UrlLink } from './names.tsx';
import { SeriesChart, SeriesTable } from './series.tsx';

const route = getRouteApi('/');

const RANGE_NAMES: Record<Range, string> = {
  '1h': '1 hour',
  '24h': '24 hours',
  '7d': '7 days',
  '30d': '30 days',
};

export function OverviewPage() {
  const { range = '24h' } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(overviewQuery(range));
  const { data: projects } = useQuery(projectsQuery);
  const picker = (
    <SegmentedControl
      aria-label="Range of time"
      data={RANGES.map((value) => ({ value, label: RANGE_NAMES[value] }))}
      value={range}
      onChange={(value) => void navigate({ search: { range: value } })}
    />
  );
  return (
    <Page title="Overview" actions={picker}>
      {projects?.length === 0 && <NothingYet />}
      <QueryView query={query} what="the numbers">
        {(overview) => <Numbers overview={overview} range={range} />}
      </QueryView>
    </Page>
  );
}

function NothingYet() {
  return (
    <Empty title="This company has no project yet">
      <Text>
        Five steps lead to the first delivered message: project, app, webhook, message, answer.
      </Text>
      <LinkButton to="/start">Take the first steps</LinkButton>
    </Empty>
  );
}

function Numbers({ overview, range }: { overview: Schemas['Overview']; range: Range }) {
  const { series, worst, asOf } = overview;
  const isQuiet = series.every(({ delivered, failed }) => delivered + failed === 0);
  return (
    <>
      <Figures figures={figuresOf(overview, range)} />
      <Text size="xs" c="dimmed">
        Counted from sums per minute, as of <When at={asOf} />. Attempts of the last 45 s may be
        missing.
      </Text>
      <Section title="Delivered and failed over time">
        {isQuiet ? (
          <Text>No attempt ended in this time.</Text>
        ) : (
          <>
            <SeriesChart series={series} range={range} />
            <SeriesTable series={series} />
          </>
        )}
      </Section>
      <Section title="Webhooks that fail most">
        <WorstWebhooks worst={worst} range={range} />
      </Section>
    </>
  );
}

/** The gateway counts no further. */
const MOST_PENDING = 10_000;

function figuresOf(overview: Schemas['Overview'], range: Range): Figure[] {
  const {
    accepted,
    delivered,
    failed,
    pending,
    oldestPendingAt,
    openCircuits,
    ingestLag,
    latencyMs,
  } = overview;
  const { p50, p99 } = latencyMs;
  const ended = delivered + failed;
  const ratio = ended === 0 ? 'nothing attempted' : `${percentText(delivered / ended)} of attempts`;
  const why = (
    <Link to="/failures" search={{ range }}>
      see why
    </Link>
  );
  const which = <Link to="/circuits">see which</Link>;
  const oldest = (
    <>
      oldest from <When at={oldestPendingAt} />
    </>
  );
  return [
    { name: 'Accepted', value: countText(accepted), note: 'deliveries with a first attempt' },
    { name: 'Delivered', value: countText(delivered), note: ratio },
    { name: 'Failed', value: countText(failed), note: failed === 0 ? 'attempts' : why },
    {
      name: 'Pending now',
      value: pending < MOST_PENDING ? countText(pending) : `${countText(pending)} or more`,
      note: oldestPendingAt === null ? 'nothing waits' : oldest,
    },
    {
      name: 'Open circuits',
      value: openCircuits === null ? '–' : countText(openCircuits),
      note: openCircuits === null ? 'not known now' : openCircuits === 0 ? 'now' : which,
    },
    {
      name: 'Median response time',
      value: p50 === null ? '–' : durationText(p50),
      note: p99 === null ? 'nothing measured' : `99 % within ${durationText(p99)}`,
    },
    ...ingestFigures(ingestLag),
  ];
}

/** Of a company whose messages come from Kafka. */
function ingestFigures(lag: number | null): Figure[] {
  if (lag === null) return [];
  const note = lag === 0 ? 'every record is accepted' : 'records not accepted yet';
  return [{ name: 'Waiting in Kafka', value: countText(lag), note }];
}

type Worst = Schemas['WorstWebhook'];

interface WorstWebhooksProps {
  worst: readonly Worst[];
  range: Range;
}

/** Longer ranges than an hour are counted by hour. */
function WorstWebhooks({ worst, range }: WorstWebhooksProps) {
  if (worst.length === 0) return <Text>No webhook has failed attempts in this time.</Text>;
  return (
    <Rows
      caption="Webhooks with the most failed attempts"
      columns={[...COLUMNS, range === '1h' ? SINCE_MINUTE : SINCE_HOUR]}
      rows={worst}
      keyOf={({ webhookId }) => webhookId}
    />
  );
}

const COLUMNS: readonly Column<Worst>[] = [
  {
    name: 'Webhook',
    cell: ({ webhookId, url }) => <UrlLink webhookId={webhookId} url={url} />,
  },
  { name: 'Mostly', width: 13, cell: ({ reason }) => `the endpoint ${outcomeWords(reason)}` },
  { name: 'Success', width: 9, cell: ({ successRatio }) => <SuccessRatio ratio={successRatio} /> },
  { name: 'Failed', width: WIDTHS.number, isNumber: true, cell: ({ failed }) => countText(failed) },
];

const SINCE_MINUTE: Column<Worst> = {
  name: 'Since',
  width: WIDTHS.time,
  cell: ({ since }) => <When at={since} />,
};

const SINCE_HOUR: Column<Worst> = {
  name: 'First failed in',
  width: WIDTHS.time,
  cell: ({ since }) => <Hour at={since} />,
};
