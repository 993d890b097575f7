import { Button, SegmentedControl, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { api, dataOf, type Schemas } from '../../api/client.ts';
import { failuresQuery, RANGE_MS } from '../../api/overview.ts';
import { RANGES, type Range } from '../../api/ranges.ts';
import { outcomeWords } from '../../parts/outcomes.ts';
import { Page } from '../../parts/page.tsx';
import { QueryView } from '../../parts/query-view.tsx';
import { Rows, type Column } from '../../parts/rows.tsx';
import { Empty, Failed } from '../../parts/states.tsx';
import { countText } from '../../parts/time/time-words.ts';
import { When } from '../../parts/time/when.tsx';
import { useRights } from '../../session/session-context.ts';
import { ResendProgress } from '../webhooks/resend-progress.tsx';

const route = getRouteApi('/failures');

export function FailuresPage() {
  const { range = '24h' } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(failuresQuery(range));
  const picker = (
    <SegmentedControl
      aria-label="Range of time"
      data={[...RANGES]}
      value={range}
      onChange={(value) => void navigate({ search: { range: value } })}
    />
  );
  return (
    <Page title="Failures" actions={picker}>
      <QueryView query={query} what="the failures">
        {(groups) => <Groups groups={groups} range={range} />}
      </QueryView>
    </Page>
  );
}

function Groups({ groups, range }: { groups: readonly Schemas['FailureGroup'][]; range: Range }) {
  const { canResend } = useRights();
  if (groups.length === 0) {
    return (
      <Empty title="No attempt failed in this time">
        <Text>
          Attempts are counted within 45 s after they ended. Choose a longer range to look further
          back.
        </Text>
      </Empty>
    );
  }
  const since = new Date(Date.now() - RANGE_MS[range]).toISOString();
  const columns = canResend ? [...COLUMNS, resendColumn(since)] : COLUMNS;
  return (
    <>
      <Text size="sm">
        Failed attempts by webhook and reason. One message can have several failed attempts. They
        are counted by hour: first and last are the beginnings of hours.
      </Text>
      <Rows
        caption="Failures by webhook and reason"
        columns={columns}
        rows={groups}
        keyOf={({ webhookId, outcome }) => `${webhookId} ${outcome}`}
      />
    </>
  );
}

const COLUMNS: readonly Column<Schemas['FailureGroup']>[] = [
  {
    name: 'Webhook',
    cell: ({ webhookId, url }) => (
      <Link to="/webhooks/$webhookId" params={{ webhookId }} search={{ tab: 'attempts' }}>
        {url}
      </Link>
    ),
  },
  {
    name: 'What happened',
    cell: ({ outcome }) => `the endpoint ${outcomeWords(outcome)}`,
  },
  { name: 'Failed', isNumber: true, cell: ({ count }) => countText(count) },
  { name: 'First', cell: ({ firstAt }) => <When at={firstAt} /> },
  { name: 'Last', cell: ({ lastAt }) => <When at={lastAt} /> },
];

function resendColumn(since: string): Column<Schemas['FailureGroup']> {
  return {
    name: 'Send again',
    cell: ({ webhookId }) => <ResendAll webhookId={webhookId} since={since} />,
  };
}

function ResendAll({ webhookId, since }: { webhookId: string; since: string }) {
  const start = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST('/api/v1/webhooks/{webhookId}/resend-failed', {
          params: { path: { webhookId } },
          body: { since },
        }),
      ),
  });
  if (start.data !== undefined) return <ResendProgress resendId={start.data.id} />;
  if (start.error !== null) return <Failed error={start.error} what="start the resend" />;
  return (
    <Button
      size="xs"
      variant="default"
      loading={start.isPending}
      onClick={() => {
        start.mutate();
      }}
    >
      Resend exhausted
    </Button>
  );
}
