import { Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schemas } from '../../api/client.ts';
import { webhookQuery } from '../../api/webhooks.ts';
import { Page } from '../../parts/page.tsx';
import { QueryView } from '../../parts/states.tsx';
import { Copyable } from '../../parts/values.tsx';
import { TABS, type WebhookTab } from '../../search.ts';
import { useRights } from '../../session/session-context.ts';
import { AttemptsTab } from './attempts-tab.tsx';
import { HealthState } from './health-cells.tsx';
import { OverviewTab } from './overview-tab.tsx';
import { SettingsTab } from './settings-tab.tsx';
import { TestingTab } from './testing-tab.tsx';

const route = getRouteApi('/webhooks/$webhookId');

export function WebhookPage() {
  const { webhookId } = route.useParams();
  const query = useQuery(webhookQuery(webhookId));
  if (query.data === undefined) {
    return (
      <Page title="Webhook" under={<Copyable text={webhookId} />}>
        <QueryView query={query} what="the webhook">
          {() => null}
        </QueryView>
      </Page>
    );
  }
  const webhook = query.data;
  const state = (
    <>
      <HealthState webhook={webhook} /> <Copyable text={webhookId} />
    </>
  );
  return (
    <Page title={webhook.url} under={state}>
      {/* Another webhook gets tabs of its own: nothing typed or done for one is shown under the title of the other. */}
      <WebhookTabs key={webhook.id} webhook={webhook} />
    </Page>
  );
}

const TAB_NAMES: Record<WebhookTab, string> = {
  overview: 'Overview',
  attempts: 'Attempts',
  settings: 'Settings',
  testing: 'Testing',
};

function WebhookTabs({ webhook }: { webhook: Schemas['WebhookWithAuth'] }) {
  const { tab = 'overview' } = route.useSearch();
  const navigate = route.useNavigate();
  const { canManageWebhooks, canTest } = useRights();
  const isOffered = (each: WebhookTab): boolean =>
    (each !== 'settings' || canManageWebhooks) && (each !== 'testing' || canTest);
  const content: Record<WebhookTab, () => ReactNode> = {
    overview: () => <OverviewTab webhook={webhook} />,
    attempts: () => <AttemptsTab webhookId={webhook.id} />,
    settings: () => <SettingsTab webhook={webhook} />,
    testing: () => <TestingTab webhook={webhook} />,
  };
  const offered = TABS.filter(isOffered);
  return (
    <Tabs
      value={offered.includes(tab) ? tab : 'overview'}
      keepMounted={false}
      onChange={(next) => void navigate({ search: { tab: next as WebhookTab } })}
    >
      <Tabs.List mb="md">
        {offered.map((each) => (
          <Tabs.Tab key={each} value={each}>
            {TAB_NAMES[each]}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {offered.map((each) => (
        <Tabs.Panel key={each} value={each}>
          {content[each]()}
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
