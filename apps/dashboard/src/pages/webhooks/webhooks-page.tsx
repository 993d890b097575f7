import { Button, Group, Pagination, Text, TextInput } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { webhookPagesQuery } from '../../api/queries.ts';
import { LinkButton } from '../../parts/link-button.tsx';
import { Page } from '../../parts/page.tsx';
import { QueryView, ShowMore } from '../../parts/query-view.tsx';
import { Rows, type Column } from '../../parts/rows.tsx';
import { Empty } from '../../parts/states.tsx';
import { countText } from '../../parts/time/time-words.ts';
import { When } from '../../parts/time/when.tsx';
import { useRights, useSession } from '../../session/session-context.ts';
import { HealthRatio, HealthState } from './health-cells.tsx';
import styles from './webhooks.module.css';

const route = getRouteApi('/webhooks');
/** Each one shown is asked for its health. */
const PER_PAGE = 20;

export function WebhooksPage() {
  const { appId } = route.useSearch();
  const { portal } = useSession();
  const { canManageWebhooks } = useRights();
  const query = useInfiniteQuery(webhookPagesQuery(appId));
  const owner = appId ?? portal?.app.id;
  const actions = canManageWebhooks && (
    <LinkButton to="/webhooks/new" search={owner === undefined ? {} : { appId: owner }}>
      Create webhook
    </LinkButton>
  );
  return (
    <Page title="Webhooks" actions={actions}>
      <QueryView query={query} what="the webhooks">
        {({ pages }) => {
          const webhooks = pages.flat();
          if (webhooks.length === 0) return <NoWebhooks />;
          return <Found webhooks={webhooks} isMore={query.hasNextPage} />;
        }}
      </QueryView>
      {query.hasNextPage && (
        <Group>
          <ShowMore query={query}>Load newer webhooks</ShowMore>
          <Text size="sm">The filter looks at those that are loaded.</Text>
        </Group>
      )}
    </Page>
  );
}

function NoWebhooks() {
  const { appId } = route.useSearch();
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

function Found({ webhooks, isMore }: { webhooks: Schemas['Webhook'][]; isMore: boolean }) {
  const { q = '', appId, page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const found = webhooks.filter((webhook) => matches(webhook, q.toLowerCase()));
  const pages = Math.max(1, Math.ceil(found.length / PER_PAGE));
  const shown = found.slice((Math.min(page, pages) - 1) * PER_PAGE).slice(0, PER_PAGE);
  return (
    <>
      <Group align="end">
        <TextInput
          className={styles.filter}
          label="Filter by URL, name or event type"
          defaultValue={q}
          onChange={({ currentTarget: { value } }) =>
            void navigate({
              search: (before) => ({ ...before, page: undefined, q: value }),
              replace: true,
            })
          }
        />
        {appId !== undefined && (
          <Button variant="default" onClick={() => void navigate({ search: {} })}>
            Show all apps
          </Button>
        )}
        <Text size="sm">
          {countText(found.length)} of {countText(webhooks.length)}
          {isMore && ' or more'}, oldest first
        </Text>
      </Group>
      {shown.length === 0 ? (
        <Empty title={`No webhook matches “${q}”`}>
          <Text>The filter looks at URL, name and event types. Shorten it, or clear it.</Text>
        </Empty>
      ) : (
        <Rows caption="Webhooks" columns={COLUMNS} rows={shown} keyOf={({ id }) => id} />
      )}
      {pages > 1 && (
        <Pagination
          total={pages}
          value={page}
          getControlProps={(control) => ({ 'aria-label': `${control} page` })}
          onChange={(next) => void navigate({ search: (before) => ({ ...before, page: next }) })}
        />
      )}
    </>
  );
}

function matches({ url, name, eventTypes }: Schemas['Webhook'], text: string): boolean {
  return [url, name, ...eventTypes].some((each) => each.toLowerCase().includes(text));
}

const COLUMNS: readonly Column<Schemas['Webhook']>[] = [
  {
    name: 'Webhook',
    cell: ({ id, url, name }) => (
      <>
        <Link to="/webhooks/$webhookId" params={{ webhookId: id }} className={styles.url}>
          {url}
        </Link>
        <Text size="xs" c="dimmed">
          {name}
        </Text>
      </>
    ),
  },
  { name: 'State', cell: (webhook) => <HealthState webhook={webhook} /> },
  { name: 'Success', cell: ({ id }) => <HealthRatio webhookId={id} /> },
  {
    name: 'Event types',
    cell: ({ eventTypes }) => (eventTypes.length === 0 ? 'receives all' : eventTypes.join(', ')),
  },
  { name: 'Changed', cell: ({ updatedAt }) => <When at={updatedAt} /> },
];
