import { Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schemas } from '../api/client.ts';
import { resendsQuery } from '../api/resends.ts';
import { AppSelect, FilterBar, WebhookSelect } from '../parts/filters.tsx';
import { Page } from '../parts/page.tsx';
import { Empty, QueryView, ShowMore } from '../parts/states.tsx';
import { type Column, Rows, WIDTHS } from '../parts/table.tsx';
import { Cut, When } from '../parts/values.tsx';
import { useSession } from '../session/session-context.ts';
import { Cancellations } from './cancellations.tsx';
import {
  AbortResend,
  ResendCounts,
  ResendOwner,
  ResendStatus,
  useOwners,
} from './resend-progress.tsx';

const route = getRouteApi('/resends');

export function ResendsPage() {
  const { appId, webhookId } = route.useSearch();
  const query = useInfiniteQuery(resendsQuery({ appId, webhookId }));
  return (
    <Page title="Resends" under={<Whose />}>
      <Filters />
      <QueryView query={query} what="the resends">
        {({ pages }) => <Resends resends={pages.flatMap(({ data }) => data)} />}
      </QueryView>
      <ShowMore query={query}>Show older resends</ShowMore>
      <Cancellations appId={appId} webhookId={webhookId} />
    </Page>
  );
}

function Filters() {
  const { appId, webhookId } = route.useSearch();
  const navigate = route.useNavigate();
  const { key } = useSession();
  const set = (name: 'appId' | 'webhookId', value: string): void => {
    void navigate({
      search: (before) => ({ ...before, [name]: value || undefined }),
      replace: true,
    });
  };
  return (
    <FilterBar
      isFiltered={appId !== undefined || webhookId !== undefined}
      clear={() => void navigate({ search: {} })}
    >
      {key.appId === null && (
        <AppSelect
          value={appId ?? ''}
          noneLabel="All apps"
          onChange={(chosen) => {
            set('appId', chosen);
          }}
        />
      )}
      <WebhookSelect
        value={webhookId ?? ''}
        appId={appId}
        onChange={(chosen) => {
          set('webhookId', chosen);
        }}
      />
    </FilterBar>
  );
}

/** Says what the list leaves out. */
function Whose() {
  const { appId, webhookId } = route.useSearch();
  const { key } = useSession();
  if (webhookId !== undefined) {
    return <Text size="sm">Of the webhook, and of single deliveries to it</Text>;
  }
  if (appId === undefined && key.appId === null) return null;
  return <Text size="sm">Of the whole app. Choose a webhook to see those of the webhook.</Text>;
}

function Resends({ resends }: { resends: Schemas['Resend'][] }) {
  const owners = useOwners(resends);
  if (resends.length === 0) {
    return (
      <Empty title="Nothing was sent again yet">
        <Text>
          What failed is sent again from the page of its webhook, from the failures, or one delivery
          at a time from its message.
        </Text>
      </Empty>
    );
  }
  const isAnyRunning = resends.some(({ status }) => status === 'running');
  const columns = [...columnsWith(owners), ...(isAnyRunning ? [ABORT] : [])];
  return <Rows caption="Resends" columns={columns} rows={resends} keyOf={({ id }) => id} />;
}

const columnsWith = (
  owners: ReturnType<typeof useOwners>,
): readonly Column<Schemas['Resend']>[] => [
  {
    name: 'Resend',
    width: WIDTHS.id,
    cell: ({ id }) => (
      <Link to="/resends/$resendId" params={{ resendId: id }}>
        <Cut text={id} look="id" />
      </Link>
    ),
  },
  { name: 'Started', width: WIDTHS.time, cell: ({ createdAt }) => <When at={createdAt} /> },
  { name: 'Status', width: WIDTHS.status, cell: (resend) => <ResendStatus resend={resend} /> },
  { name: 'Of', cell: (resend) => <ResendOwner resend={resend} {...owners} /> },
  { name: 'Deliveries', width: 17, cell: (resend) => <ResendCounts resend={resend} /> },
];

const ABORT: Column<Schemas['Resend']> = {
  name: 'Abort',
  width: 9,
  cell: (resend) => <AbortResend resend={resend} />,
};
