import { Button, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { PORTAL_COMPANY_ID } from '../../api/addresses.ts';
import { findWebhooksQuery, type FoundWebhook } from '../../api/webhooks.ts';
import { AppSelect, FilterBar, FilterInput } from '../../parts/filters.tsx';
import { LinkButton, Page } from '../../parts/page.tsx';
import { Empty, QueryView, ShowMore } from '../../parts/states.tsx';
import { type Column, Rows, WIDTHS } from '../../parts/table.tsx';
import { Copyable, Cut } from '../../parts/values.tsx';
import { useRights, useSession } from '../../session/session-context.ts';
import { HealthRatio, HealthState, LastAttempt } from './health.tsx';
import styles from './webhooks.module.css';

const route = getRouteApi('/webhooks');

/** Each webhook that is shown is asked for its health, so they come in small pages. */
export function WebhooksPage() {
  const { q: text = '', appId } = route.useSearch();
  const { portal } = useSession();
  const { canManageWebhooks } = useRights();
  const query = useInfiniteQuery(findWebhooksQuery({ text, appId }));
  const owner = appId ?? portal?.app.id;
  const actions = canManageWebhooks && (
    <LinkButton to="/webhooks/new" search={owner === undefined ? {} : { appId: owner }}>
      Create webhook
    </LinkButton>
  );
  return (
    <Page title="Webhooks" actions={actions}>
      <Filters />
      <QueryView query={query} what="the webhooks">
        {({ pages }) => {
          const webhooks = pages.flatMap(({ data }) => data);
          if (webhooks.length > 0) return <WebhookRows webhooks={webhooks} />;
          return <NoneFound text={text} isMore={query.hasNextPage} />;
        }}
      </QueryView>
      <ShowMore query={query}>Show older webhooks</ShowMore>
    </Page>
  );
}

const FIND_IN_PORTAL = 'Find by URL, name or event type';

function Filters() {
  const { q, appId } = route.useSearch();
  const { key } = useSession();
  const navigate = route.useNavigate();
  const set = (name: 'q' | 'appId', value: string): void => {
    void navigate({
      search: (before) => ({ ...before, [name]: value || undefined }),
      replace: true,
    });
  };
  return (
    <FilterBar
      isFiltered={q !== undefined || appId !== undefined}
      clear={() => void navigate({ search: {}, replace: true })}
    >
      <FilterInput
        isWide
        label={PORTAL_COMPANY_ID === null ? 'Find by URL, name, event type or uid' : FIND_IN_PORTAL}
        value={q}
        set={(text) => {
          set('q', text);
        }}
      />
      {key.appId === null && (
        <AppSelect
          value={appId ?? ''}
          noneLabel="All apps"
          onChange={(chosen) => {
            set('appId', chosen);
          }}
        />
      )}
    </FilterBar>
  );
}

/** The gateway looks at 1,000 webhooks for one page. */
function NoneFound({ text, isMore }: { text: string; isMore: boolean }) {
  const { appId } = route.useSearch();
  const navigate = route.useNavigate();
  if (isMore) return <Text>Nothing matches in the newest webhooks. Older ones may match.</Text>;
  const clear = (
    <Button variant="default" onClick={() => void navigate({ search: {} })}>
      Show all webhooks
    </Button>
  );
  if (text !== '') {
    return (
      <Empty title={`No webhook matches “${text}”`}>
        <Text>
          Its URL, name or an event type must have this text in it
          {PORTAL_COMPANY_ID === null && ', or its uid must be this text'}.
        </Text>
        {clear}
      </Empty>
    );
  }
  return (
    <Empty title="There is no webhook yet">
      <Text>
        A webhook is a URL that gets the messages of an app.{' '}
        {appId !== undefined && 'This app has none. '}
        Create one, then send it a test message.
      </Text>
      {appId !== undefined && <Link to="/webhooks">Show the webhooks of all apps</Link>}
    </Empty>
  );
}

/** Webhooks, each with how it does now. */
function WebhookRows({ webhooks }: { webhooks: readonly FoundWebhook[] }) {
  const { key } = useSession();
  const columns = key.appId === null ? [WEBHOOK, APP, ...OTHERS] : [WEBHOOK, ...OTHERS];
  return <Rows caption="Webhooks" columns={columns} rows={webhooks} keyOf={({ id }) => id} />;
}

const WEBHOOK: Column<FoundWebhook> = {
  name: 'Webhook',
  cell: ({ id, url, name, uid }) => (
    <>
      <Link to="/webhooks/$webhookId" params={{ webhookId: id }} className={styles.url}>
        <Cut text={url} lines={2} />
      </Link>
      <Cut text={name} look="small" />
      {PORTAL_COMPANY_ID === null && uid !== null && <Copyable text={uid} name="uid" />}
    </>
  ),
};

const APP: Column<FoundWebhook> = {
  name: 'App',
  width: 9.5,
  cell: ({ appId, appName }) =>
    appId === null ? (
      'all of its environment'
    ) : (
      <Link to="/apps/$appId" params={{ appId }}>
        <Cut text={appName ?? appId} lines={2} />
      </Link>
    ),
};

const OTHERS: readonly Column<FoundWebhook>[] = [
  { name: 'State', width: 10, cell: (webhook) => <HealthState webhook={webhook} /> },
  { name: 'Success', width: 8.5, cell: ({ id }) => <HealthRatio webhookId={id} /> },
  { name: 'Last attempt', width: WIDTHS.time, cell: ({ id }) => <LastAttempt webhookId={id} /> },
  {
    name: 'Event types',
    width: 10.5,
    cell: ({ eventTypes }) =>
      eventTypes.length === 0 ? 'receives all' : <Cut text={eventTypes.join(', ')} lines={2} />,
  },
];
