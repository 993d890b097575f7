import { Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schemas } from '../api/client.ts';
import { resendsQuery } from '../api/resends.ts';
import { LinkButton, Page } from '../parts/page.tsx';
import { Empty, QueryView, ShowMore } from '../parts/states.tsx';
import { type Column, Rows } from '../parts/table.tsx';
import { When } from '../parts/values.tsx';
import { useSession } from '../session/session-context.ts';
import { AbortResend, ResendCounts, ResendOwner, ResendStatus } from './resend-progress.tsx';

const route = getRouteApi('/resends');

export function ResendsPage() {
  const { appId, webhookId } = route.useSearch();
  const query = useInfiniteQuery(resendsQuery({ appId, webhookId }));
  const isFiltered = appId !== undefined || webhookId !== undefined;
  return (
    <Page
      title="Resends"
      under={<Whose />}
      actions={
        isFiltered && (
          <LinkButton to="/resends" variant="default">
            Show all resends
          </LinkButton>
        )
      }
    >
      <QueryView query={query} what="the resends">
        {({ pages }) => <Resends resends={pages.flatMap(({ data }) => data)} />}
      </QueryView>
      <ShowMore query={query}>Show older resends</ShowMore>
    </Page>
  );
}

/** Says what the list leaves out. */
function Whose() {
  const { appId, webhookId } = route.useSearch();
  const { key } = useSession();
  if (webhookId !== undefined) {
    return (
      <Text size="sm">
        Of the webhook{' '}
        <Link to="/webhooks/$webhookId" params={{ webhookId }}>
          {webhookId}
        </Link>
        , and of single deliveries to it
      </Text>
    );
  }
  if (appId === undefined && key.appId === null) return null;
  return (
    <Text size="sm">Of the whole app. The page of a webhook leads to those of the webhook.</Text>
  );
}

function Resends({ resends }: { resends: Schemas['Resend'][] }) {
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
  return <Rows caption="Resends" columns={COLUMNS} rows={resends} keyOf={({ id }) => id} />;
}

const COLUMNS: readonly Column<Schemas['Resend']>[] = [
  {
    name: 'Resend',
    cell: ({ id }) => (
      <Link to="/resends/$resendId" params={{ resendId: id }}>
        {id}
      </Link>
    ),
  },
  { name: 'Started', cell: ({ createdAt }) => <When at={createdAt} /> },
  { name: 'Status', cell: (resend) => <ResendStatus resend={resend} /> },
  { name: 'Of', cell: (resend) => <ResendOwner resend={resend} /> },
  { name: 'Deliveries', cell: (resend) => <ResendCounts resend={resend} /> },
  { name: 'Abort', cell: (resend) => <AbortResend resend={resend} /> },
];
