import { Button, Group, SegmentedControl, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { api, dataOf, type Schemas } from '../api/client.ts';
import { failuresQuery, RANGE_MS } from '../api/overview.ts';
import { failedSinceQuery, failedText } from '../api/resends.ts';
import { COUNTED_WITHIN, outcomeWords, type Range, RANGES } from '../api/words.ts';
import { Dialog } from '../parts/dialog.tsx';
import { AppSelect, FilterBar } from '../parts/filters.tsx';
import { Page } from '../parts/page.tsx';
import { Empty, Failed, QueryView } from '../parts/states.tsx';
import { type Column, Rows, WIDTHS } from '../parts/table.tsx';
import { absoluteTime, countText } from '../parts/time-words.ts';
import { Hour, useNowMs } from '../parts/values.tsx';
import { useRights, useSession } from '../session/session-context.ts';
import { UrlLink } from './names.tsx';
import { ResendProgress } from './resend-progress.tsx';

const route = getRouteApi('/failures');

export function FailuresPage() {
  const { range = '24h', appId } = route.useSearch();
  const { key } = useSession();
  const navigate = route.useNavigate();
  const query = useQuery(failuresQuery(range, appId));
  const picker = (
    <SegmentedControl
      aria-label="Range of time"
      data={[...RANGES]}
      value={range}
      onChange={(value) => void navigate({ search: (before) => ({ ...before, range: value }) })}
    />
  );
  return (
    <Page title="Failures" actions={picker}>
      {key.appId === null && (
        <FilterBar
          isFiltered={appId !== undefined}
          clear={() => void navigate({ search: { range } })}
        >
          <AppSelect
            value={appId ?? ''}
            noneLabel="All apps"
            onChange={(chosen) =>
              void navigate({ search: (before) => ({ ...before, appId: chosen || undefined }) })
            }
          />
        </FilterBar>
      )}
      <QueryView query={query} what="the failures">
        {(groups) => <Groups groups={groups} range={range} />}
      </QueryView>
    </Page>
  );
}

const HOUR_MS = 3_600_000;

function Groups({ groups, range }: { groups: readonly Schemas['FailureGroup'][]; range: Range }) {
  const { canResend } = useRights();
  // Rounded, so that the estimate stays when the page asks again.
  const since = new Date(
    Math.floor(useNowMs() / HOUR_MS) * HOUR_MS - RANGE_MS[range],
  ).toISOString();
  if (groups.length === 0) {
    return (
      <Empty title="No attempt failed in this time">
        <Text>
          Attempts are counted within {COUNTED_WITHIN}. Choose a longer range to look further back.
        </Text>
      </Empty>
    );
  }
  const columns = canResend ? [...COLUMNS, resendColumn(since)] : COLUMNS;
  return (
    <>
      <Text size="sm">
        Failed attempts by webhook and reason. One message can have several failed attempts. They
        are counted by hour, in your time.
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
    cell: ({ webhookId, url }) => <UrlLink webhookId={webhookId} url={url} tab="attempts" />,
  },
  {
    name: 'What happened',
    width: 13,
    cell: ({ outcome }) => `the endpoint ${outcomeWords(outcome)}`,
  },
  { name: 'Failed', width: WIDTHS.number, isNumber: true, cell: ({ count }) => countText(count) },
  { name: 'First in', width: WIDTHS.time, cell: ({ firstAt }) => <Hour at={firstAt} /> },
  { name: 'Last in', width: WIDTHS.time, cell: ({ lastAt }) => <Hour at={lastAt} /> },
];

function resendColumn(since: string): Column<Schemas['FailureGroup']> {
  return {
    name: 'Send again',
    width: 9.5,
    cell: (group) => <ResendGroup group={group} since={since} />,
  };
}

interface ResendGroupProps {
  group: Schemas['FailureGroup'];
  since: string;
}

/** Sends again what failed at the webhook of a group with its outcome, after a question that says how many that is. */
function ResendGroup({ group, since: latest }: ResendGroupProps) {
  /** Fixed when the question is asked: the page goes on. */
  const [since, setSince] = useState<string | null>(null);
  const start = useMutation({
    mutationFn: (from: string) => resendFailed(group, from),
    onSuccess: () => {
      setSince(null);
    },
  });
  if (start.data !== undefined) return <ResendProgress resendId={start.data.id} />;
  return (
    <>
      <Button
        size="xs"
        variant="default"
        onClick={() => {
          start.reset();
          setSince(latest);
        }}
      >
        Resend group
      </Button>
      <Dialog
        title="Send failed deliveries again?"
        isOpen={since !== null}
        close={() => {
          setSince(null);
        }}
      >
        {since !== null && <Question group={group} since={since} />}
        {start.error !== null && <Failed error={start.error} what="start the resend" />}
        <Group justify="flex-end" mt="md">
          <Button
            loading={start.isPending}
            onClick={() => {
              if (since !== null) start.mutate(since);
            }}
          >
            Send them again
          </Button>
        </Group>
      </Dialog>
    </>
  );
}

function resendFailed(
  { webhookId, outcome }: Schemas['FailureGroup'],
  since: string,
): Promise<Schemas['Resend']> {
  const params = { path: { webhookId } };
  // No group is of successes.
  const body = { since, ...(outcome !== 'success' && { outcome }) };
  return dataOf(api.POST('/webhooks/{webhookId}/resend-failed', { params, body }));
}

function Question({ group: { webhookId, url, outcome }, since }: ResendGroupProps) {
  const { data, error } = useQuery(failedSinceQuery(webhookId, since));
  return (
    <>
      {error !== null && <Failed error={error} what="count what failed" />}
      <Text size="sm">
        {data === undefined ? 'Counting what failed …' : failedText(data)} to {url} ended exhausted
        or cancelled, of messages since {absoluteTime(Date.parse(since))}. Those whose last attempt
        ended with “{outcomeWords(outcome)}” will get one attempt each, oldest first.
      </Text>
      <Text size="sm" mt="xs">
        What failed otherwise, is pending or was delivered is not touched.
      </Text>
    </>
  );
}
