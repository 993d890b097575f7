import { Group, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { answerOf, api, type Schemas } from '../../api/client.ts';
import { statsQuery } from '../../api/overview.ts';
import { appCountsQuery, appQuery } from '../../api/projects.ts';
import { COUNTED_WITHIN } from '../../api/words.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { CountsBar, Facts } from '../../parts/figures.tsx';
import { LinkButton, Page, Section } from '../../parts/page.tsx';
import { QueryView } from '../../parts/states.tsx';
import { countText } from '../../parts/time-words.ts';
import { Copyable, None, When } from '../../parts/values.tsx';
import { useRights } from '../../session/session-context.ts';
import { HoldControls } from '../hold-controls.tsx';
import { useOwnFacts } from '../own-fields.tsx';
import { EditNamed } from './named-form.tsx';
import { Portal } from './portal-link-form.tsx';
import { PortalLinks } from './portal-links.tsx';

const route = getRouteApi('/apps/$appId');

export function AppPage() {
  const { appId } = route.useParams();
  const app = useQuery(appQuery(appId));
  const { canManageProjects, canManageWebhooks, canSend, canMakePortalLinks } = useRights();
  const actions = (
    <>
      {canSend && (
        <LinkButton to="/messages/new" search={{ appId }}>
          Send a message
        </LinkButton>
      )}
      {canManageWebhooks && (
        <LinkButton to="/webhooks/new" search={{ appId }} variant="default">
          Create webhook
        </LinkButton>
      )}
      {canManageProjects && app.data !== undefined && <EditApp app={app.data} />}
      {canManageProjects && app.data !== undefined && <DeleteApp app={app.data} />}
    </>
  );
  return (
    <Page
      title={app.data?.name ?? 'App'}
      under={<Copyable text={appId} name="app id" />}
      actions={actions}
    >
      <QueryView query={app} what="the app">
        {(found) => <AppFacts app={found} />}
      </QueryView>
      <AppCounts appId={appId} />
      {app.data !== undefined && <HoldControls kind="app" {...app.data} />}
      {app.data !== undefined &&
        (canMakePortalLinks ? (
          <Portal appId={appId} appName={app.data.name} />
        ) : (
          <PortalLinks appId={appId} />
        ))}
    </Page>
  );
}

function AppFacts({ app }: { app: Schemas['App'] }) {
  const { id, description, environment, storeResponses, storePayloads, createdAt } = app;
  const { data: counts } = useQuery(appCountsQuery([id]));
  return (
    <Facts
      facts={[
        ['Environment', environment],
        ['Description', description || <None key="description" />],
        ...useOwnFacts(app),
        [
          'Webhooks',
          <Link key="webhooks" to="/webhooks" search={{ appId: id }}>
            {counts?.[0] === undefined
              ? 'show them'
              : `${countText(counts[0].webhooks)}, show them`}
          </Link>,
        ],
        [
          'Messages',
          <Link key="messages" to="/messages" search={{ appId: id }}>
            show them
          </Link>,
        ],
        [
          'Resends',
          <Link key="resends" to="/resends" search={{ appId: id }}>
            show them
          </Link>,
        ],
        ['Answers', storeResponses === false ? 'not stored' : 'stored, their first 4 KiB'],
        ['Payloads', storePayloads === 'until-delivered' ? 'erased once delivered' : 'kept'],
        ['Created', <When key="created" at={createdAt} />],
      ]}
    />
  );
}

function AppCounts({ appId }: { appId: string }) {
  const stats = useQuery(statsQuery({ appId }));
  return (
    <Section title="Attempts in the last 24 hours">
      <QueryView query={stats} what="the counts of attempts">
        {({ points }) => (
          <>
            <CountsBar
              parts={[
                {
                  name: 'succeeded',
                  count: points.reduce((sum, { succeeded }) => sum + succeeded, 0),
                  tone: 'good',
                },
                {
                  name: 'failed',
                  count: points.reduce((sum, { failed }) => sum + failed, 0),
                  tone: 'bad',
                },
              ]}
            />
            <Text size="xs" c="dimmed">
              An attempt is counted within {COUNTED_WITHIN}.
            </Text>
          </>
        )}
      </QueryView>
    </Section>
  );
}

function DeleteApp({ app: { id, name } }: { app: Schemas['App'] }) {
  const client = useQueryClient();
  const navigate = route.useNavigate();
  const { data: counts } = useQuery(appCountsQuery([id]));
  return (
    <Group>
      <Confirm
        action="Delete app"
        consequence={`“${name}” and ${itsWebhooks(counts?.[0]?.webhooks)} will be deleted, and pending deliveries cancelled. Messages and deliveries stay readable.`}
        perform={() => answerOf(api.DELETE('/apps/{appId}', { params: { path: { appId: id } } }))}
        onDone={() => {
          void client.invalidateQueries();
          void navigate({ to: '/projects' });
        }}
      />
    </Group>
  );
}

function itsWebhooks(count: number | undefined): string {
  if (count === undefined) return 'its webhooks';
  return count === 1 ? 'its webhook' : `its ${countText(count)} webhooks`;
}

function EditApp({ app }: { app: Schemas['App'] }) {
  const client = useQueryClient();
  const params = { path: { appId: app.id } };
  return (
    <EditNamed
      kind="app"
      stored={app}
      change={(body) => answerOf(api.PUT('/apps/{appId}', { params, body }))}
      onChanged={() => void client.invalidateQueries()}
    />
  );
}
