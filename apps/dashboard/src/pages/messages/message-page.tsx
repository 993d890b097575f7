import { Group, SegmentedControl, Text } from '@mantine/core';
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import type { Schemas } from '../../api/client.ts';
import { useLiveReload } from '../../api/live.ts';
import { deliveriesQuery, erasePayload, messageQuery } from '../../api/messages.ts';
import { curlOf } from '../../api/recorded-calls.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { type Fact, Facts } from '../../parts/figures.tsx';
import { Page, Section } from '../../parts/page.tsx';
import { Empty, QueryView, ShowMore } from '../../parts/states.tsx';
import { DeliveryStatus } from '../../parts/status.tsx';
import { CodeBlock, Copyable, None, When } from '../../parts/values.tsx';
import { useRights, useSession } from '../../session/session-context.ts';
import { AppLink, useApps, useWebhooks } from '../names.tsx';
import { DeliveryCard } from './delivery-card.tsx';
import { messageBody, pretty } from './message-rules.ts';

const route = getRouteApi('/messages/$messageId');

export function MessagePage() {
  const { messageId } = route.useParams();
  return (
    <Page title="Message">
      <MessageDetail messageId={messageId} key={messageId} />
    </Page>
  );
}

/** Everything about one message. New attempts are added at the end of its time lines, so nothing moves. */
export function MessageDetail({ messageId }: { messageId: string }) {
  const message = useQuery(messageQuery(messageId));
  const deliveries = useInfiniteQuery(deliveriesQuery(messageId));
  useLiveReload(
    (event) =>
      event.kind === 'more' ? isOpen(message.data) : event.attempt.messageId === messageId,
    () => {
      void message.refetch();
      void deliveries.refetch();
    },
  );
  return (
    <QueryView query={message} what="the message">
      {(found) => (
        <>
          <MessageFacts message={found} />
          <Section title="Deliveries">
            <QueryView query={deliveries} what="the deliveries">
              {({ pages }) => (
                <Deliveries
                  deliveries={pages.flatMap(({ data }) => data)}
                  noTargetReason={found.noTargetReason}
                  isErased={found.payload === null}
                />
              )}
            </QueryView>
            <ShowMore query={deliveries}>Show more deliveries</ShowMore>
          </Section>
          <Payload message={found} />
        </>
      )}
    </QueryView>
  );
}

function isOpen(message: Schemas['Message'] | undefined): boolean {
  return message === undefined || message.status === 'pending';
}

function MessageFacts({ message }: { message: Schemas['Message'] }) {
  const { id, appId, eventType, tags, externalId, orderingKey } = message;
  const { status, createdAt, signature } = message;
  const apps = useApps([appId]);
  return (
    <Facts
      facts={[
        ['Status', <DeliveryStatus key="status" status={status} />],
        ['Message', <Copyable key="id" text={id} name="message id" />],
        ['Event type', eventType ?? <None key="type" />],
        [
          'External id',
          externalId === null ? (
            <None key="external" />
          ) : (
            <Copyable key="external" text={externalId} name="external id" />
          ),
        ],
        ...(orderingKey === null
          ? []
          : [['Ordering key', <Copyable key="order" text={orderingKey} name="ordering key" />] as const]),
        ['Tags', tags.length === 0 ? <None key="tags" /> : <Tags key="tags" tags={tags} />],
        [
          'App',
          appId === null ? (
            'sent to one webhook'
          ) : (
            <AppLink key="app" appId={appId} app={apps.get(appId)} />
          ),
        ],
        ['Accepted', <When key="created" at={createdAt} />],
        ...timesOf(message),
        [
          'Signature',
          signature === null ? (
            <None key="signature" />
          ) : (
            <Copyable key="signature" text={signature} name="signature" />
          ),
        ],
      ]}
    />
  );
}

/** The times that its sender gave it. */
function timesOf({ deliverAt, expiresAt, retentionDays }: Schemas['Message']): Fact[] {
  const facts: Fact[] = [];
  if (deliverAt !== null) facts.push(['Deliver at', <When key="deliver" at={deliverAt} />]);
  if (expiresAt !== null) facts.push(['Expires', <When key="expires" at={expiresAt} />]);
  if (retentionDays !== null) facts.push(['Kept for', `${retentionDays} days`]);
  return facts;
}

function Tags({ tags }: { tags: readonly string[] }) {
  return tags.map((tag) => (
    <div key={tag}>
      <Copyable text={tag} name="tag" />
    </div>
  ));
}

const NO_TARGET = {
  no_webhook: 'The app had no webhook when the message came.',
  event_type: 'No webhook of the app selected the event type of the message when it came.',
  filter: 'Webhooks of the app selected its event type, and it passed the filter of none.',
} as const;

interface DeliveriesProps extends Pick<Schemas['Message'], 'noTargetReason'> {
  deliveries: Schemas['Delivery'][];
  isErased: boolean;
}

function Deliveries({ deliveries, noTargetReason, isErased }: DeliveriesProps) {
  const webhooks = useWebhooks(deliveries.map(({ webhookId }) => webhookId));
  if (deliveries.length === 0) {
    return (
      <Empty title="No webhook selected this message">
        <Text>
          {noTargetReason === null
            ? 'The app had no webhook for it when the message came.'
            : NO_TARGET[noTargetReason]}{' '}
          A new webhook gets it by a replay of what it has missed.
        </Text>
      </Empty>
    );
  }
  return deliveries.map((delivery) => (
    <DeliveryCard
      key={delivery.id}
      delivery={delivery}
      webhook={webhooks.get(delivery.webhookId)}
      isErased={isErased}
    />
  ));
}

const SHAPES = [
  { value: 'pretty', label: 'Pretty' },
  { value: 'raw', label: 'Raw' },
  { value: 'curl', label: 'curl' },
];

/** The payload, to read, byte for byte as it was sent, or as the request that sends it again. */
function Payload({ message }: { message: Schemas['Message'] }) {
  const { kind } = useSession();
  const [shape, setShape] = useState('pretty');
  const { payload } = message;
  if (payload === null) {
    return (
      <Section title="Payload">
        <Text size="sm">
          It was erased: by a request, or after every delivery was delivered, as its app asks.
        </Text>
      </Section>
    );
  }
  const shapes = kind === 'portal' ? SHAPES.filter(({ value }) => value !== 'curl') : SHAPES;
  const control = (
    <Group gap="sm">
      <SegmentedControl
        size="xs"
        data={shapes}
        value={shape}
        onChange={setShape}
        aria-label="Show as"
      />
      <Erase messageId={message.id} />
    </Group>
  );
  return (
    <Section title="Payload" actions={control}>
      <CodeBlock name="Payload" text={textOf(shape, message, payload)} />
    </Section>
  );
}

function Erase({ messageId }: { messageId: string }) {
  const client = useQueryClient();
  const { canErase } = useRights();
  if (!canErase) return null;
  const reload = (): void => {
    void client.invalidateQueries(messageQuery(messageId));
    void client.invalidateQueries(deliveriesQuery(messageId));
  };
  return (
    <Confirm
      action="Erase payload"
      consequence="The payload and the responses of all its deliveries are erased for good, and deliveries that are pending are cancelled. Kafka keeps the payload of a small message for up to 3 days and 6 hours."
      perform={() => erasePayload(messageId)}
      onDone={reload}
    />
  );
}

function textOf(shape: string, message: Schemas['Message'], payload: string): string {
  if (shape === 'raw') return payload;
  if (shape === 'pretty') return pretty(payload);
  const { appId, deliveries } = message;
  const to = appId === null ? { webhookId: deliveries[0]?.webhookId } : { appId };
  const body = messageBody({ ...message, to }, payload);
  return curlOf({ method: 'POST', path: '/api/v1/webhook-messages' }, body);
}
