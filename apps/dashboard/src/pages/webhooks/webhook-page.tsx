import { Button, Group, NativeSelect, Tabs, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import type { Schemas } from '../../api/client.ts';
import { catalogueQuery } from '../../api/event-types.ts';
import { useLiveReload } from '../../api/live.ts';
import { deliveryQuery } from '../../api/messages.ts';
import { curlOf } from '../../api/recorded-calls.ts';
import { sendTest, webhookQuery } from '../../api/webhooks.ts';
import { EventTypeInput, FilterBar } from '../../parts/filters.tsx';
import { valueTo } from '../../parts/form-fields.ts';
import { Page, Section } from '../../parts/page.tsx';
import { Failed, QueryView } from '../../parts/states.tsx';
import { CodeBlock, Copyable } from '../../parts/values.tsx';
import { TABS, type WebhookTab } from '../../search.ts';
import { useRights, useSession } from '../../session/session-context.ts';
import { DeliveryCard } from '../messages/delivery-card.tsx';
import { MessageList } from '../messages/message-list.tsx';
import { HealthState } from './health.tsx';
import { OverviewTab } from './overview-tab.tsx';
import { SettingsTab } from './settings-tab.tsx';
import styles from './webhooks.module.css';

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

const STATUSES = [
  { value: '', label: 'All' },
  { value: 'pending', label: 'Pending: another attempt follows' },
  { value: 'delivered', label: 'Delivered' },
  { value: 'exhausted', label: 'Exhausted: no attempt follows' },
  { value: 'cancelled', label: 'Cancelled' },
] as const;

/** The deliveries to one webhook; each leads to its attempts. */
function AttemptsTab({ webhookId }: { webhookId: string }) {
  const { status, eventType } = route.useSearch();
  const navigate = route.useNavigate();
  const setStatus = (value: string): void => {
    const found = STATUSES.find((each) => each.value === value)?.value;
    void navigate({
      search: (before) => ({ ...before, status: found === '' ? undefined : found }),
    });
  };
  const setEventType = (value: string): void => {
    void navigate({
      search: (before) => ({ ...before, eventType: value || undefined }),
      replace: true,
    });
  };
  return (
    <div className={styles.rail}>
      <FilterBar
        isFiltered={status !== undefined || eventType !== undefined}
        clear={() => void navigate({ search: { tab: 'attempts' } })}
      >
        <NativeSelect
          label="Status"
          data={[...STATUSES]}
          value={status ?? ''}
          onChange={valueTo(setStatus)}
        />
        <EventTypeInput value={eventType} set={setEventType} />
      </FilterBar>
      <MessageList
        filter={{ webhookId, deliveryStatus: status, eventType }}
        deliveriesTo={webhookId}
        key={`${status ?? ''} ${eventType ?? ''}`}
      />
    </div>
  );
}

/** Sends a test message and shows what the endpoint answered. */
function TestingTab({ webhook: { id, appId, disabled } }: { webhook: Schemas['WebhookWithAuth'] }) {
  const { kind } = useSession();
  const [eventType, setEventType] = useState('');
  const test = useMutation({ mutationFn: () => sendTest(id, eventType) });
  return (
    <div className={styles.rail}>
      <Section title="Send a test message">
        <Text size="sm">
          {disabled
            ? 'The webhook is disabled. Enable it in its settings, then test it.'
            : 'The endpoint gets a small JSON object, or the example of an event type, signed like every message. Its answer is shown here.'}
        </Text>
        {appId !== null && <TestedType appId={appId} value={eventType} set={setEventType} />}
        <Group>
          <Button
            disabled={disabled}
            loading={test.isPending}
            onClick={() => {
              test.mutate();
            }}
          >
            Send test message
          </Button>
        </Group>
        {test.error !== null && <Failed error={test.error} what="send the test message" />}
        {test.data !== undefined && <TestAnswer deliveryId={test.data.id} />}
      </Section>
      {kind === 'company' && (
        <Section title="The same with curl">
          <CodeBlock
            name="Test with curl"
            text={curlOf({
              method: 'POST',
              path: `/api/v1/webhooks/${id}/test`,
              ...(eventType !== '' && { body: JSON.stringify({ eventType }) }),
            })}
          />
        </Section>
      )}
    </div>
  );
}

interface TestedTypeProps {
  appId: string;
  value: string;
  set: (eventType: string) => void;
}

/** Not there without a catalogue. */
function TestedType({ appId, value, set }: TestedTypeProps) {
  const { data: types = [] } = useQuery(catalogueQuery({ appId }));
  if (types.length === 0) return null;
  const none = { value: '', label: 'None: the usual test message' };
  return (
    <NativeSelect
      label="Event type of the test message"
      data={[none, ...types.map(({ name }) => ({ value: name, label: name }))]}
      value={value}
      onChange={valueTo(set)}
    />
  );
}

function TestAnswer({ deliveryId }: { deliveryId: string }) {
  const query = useQuery(deliveryQuery(deliveryId));
  useLiveReload(
    (event) => event.kind === 'more' || event.attempt.deliveryId === deliveryId,
    () => void query.refetch(),
  );
  return (
    <QueryView query={query} what="the delivery of the test message">
      {(delivery) => <DeliveryCard delivery={delivery} />}
    </QueryView>
  );
}
