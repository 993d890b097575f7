import { NativeSelect, Text } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import {
  type CatalogueOf,
  type EventType,
  eventTypeQuery,
  type ListedEventType,
} from '../../api/event-types.ts';
import { findWebhooksQuery, type FoundWebhook } from '../../api/webhooks.ts';
import { Facts } from '../../parts/figures.tsx';
import { valueTo } from '../../parts/form-fields.ts';
import { LinkButton, Page, Section } from '../../parts/page.tsx';
import { QueryView, ShowMore } from '../../parts/states.tsx';
import { Status } from '../../parts/status.tsx';
import { type Column, Rows } from '../../parts/table.tsx';
import { CodeBlock, Copyable, Cut, When } from '../../parts/values.tsx';
import { useRights } from '../../session/session-context.ts';
import { groupOf } from './catalogue.ts';
import styles from './event-types.module.css';

interface EventTypePageProps {
  of: CatalogueOf;
  name: string;
}

/** One event type: what it says, an example, its schema, and the webhooks that get it. */
export function EventTypePage({ of, name }: EventTypePageProps) {
  const query = useQuery(eventTypeQuery(of, name));
  return (
    <Page title={name} under={<Copyable text={name} name="event type" />} actions={<ToAll />}>
      <QueryView query={query} what="the event type">
        {(type) => (
          <>
            {type.description !== '' && (
              <Text className={styles.description}>{type.description}</Text>
            )}
            <TypeFacts type={type} />
            <Example type={type} />
            <SchemaSection of={of} type={type} />
          </>
        )}
      </QueryView>
      <Selecting of={of} name={name} />
    </Page>
  );
}

function ToAll() {
  return (
    <LinkButton
      to="/event-types"
      variant="default"
      search={({ projectId, q }) => ({ projectId, q })}
    >
      All event types
    </LinkButton>
  );
}

function TypeFacts({ type }: { type: EventType }) {
  const { schema, schemaVersion, updatedAt } = type;
  return (
    <Facts
      facts={[
        ['State', <TypeState key="state" type={type} />],
        ['Group', groupOf(type)],
        ...(schema === null ? [] : [['Version of the schema', String(schemaVersion)] as const]),
        ['Changed', <When key="changed" at={updatedAt} />],
      ]}
    />
  );
}

/** Most are neither deprecated nor archived. */
export function TypeState({ type }: { type: Pick<ListedEventType, 'deprecated' | 'archived'> }) {
  if (type.archived) return <Status tone="off">archived</Status>;
  if (type.deprecated) return <Status tone="warning">deprecated</Status>;
  return <Status tone="good">current</Status>;
}

function Example({ type: { name, example } }: { type: EventType }) {
  return (
    <Section title="Example">
      {example === null ? (
        <Text>There is no example of its payload.</Text>
      ) : (
        <CodeBlock name={`Example of ${name}`} text={JSON.stringify(example, null, 2)} />
      )}
    </Section>
  );
}

/** How many schemas of an event type stay readable (docs/contract.md C28). */
const VERSIONS_KEPT = 20;

function SchemaSection({ of, type }: { of: CatalogueOf; type: EventType }) {
  const { name, schemaVersion: newest } = type;
  const [version, setVersion] = useState(newest);
  const query = useQuery(eventTypeQuery(of, name, version === newest ? undefined : version));
  const count = 'projectId' in of ? Math.min(newest, VERSIONS_KEPT) : 1;
  const versions = Array.from({ length: count }, (_, n) => String(newest - n));
  return (
    <Section title="Schema">
      {versions.length > 1 && (
        <NativeSelect
          label="Version"
          data={versions}
          value={String(version)}
          className={styles.version ?? ''}
          onChange={valueTo((chosen) => {
            setVersion(Number(chosen));
          })}
        />
      )}
      <QueryView query={query} what="the schema">
        {({ schema }) =>
          schema === null ? (
            <Text>Its payloads have no schema.</Text>
          ) : (
            <CodeBlock name={`Schema of ${name}`} text={JSON.stringify(schema, null, 2)} />
          )
        }
      </QueryView>
    </Section>
  );
}

/** By name, by a wildcard, or because they get all. */
function Selecting({ of, name }: EventTypePageProps) {
  const { canManageWebhooks } = useRights();
  const query = useInfiniteQuery(findWebhooksQuery({ ...of, eventType: name }));
  return (
    <Section
      title="Webhooks that select it"
      actions={
        canManageWebhooks &&
        'appId' in of && (
          <LinkButton to="/webhooks/new" search={{ eventType: name }} variant="default" size="xs">
            Create a webhook for it
          </LinkButton>
        )
      }
    >
      <QueryView query={query} what="the webhooks">
        {({ pages }) => {
          const webhooks = pages.flatMap(({ data }) => data);
          if (webhooks.length > 0) {
            return (
              <Rows caption="Webhooks" columns={COLUMNS} rows={webhooks} keyOf={({ id }) => id} />
            );
          }
          if (query.hasNextPage) return <Text>None of the newest webhooks selects it.</Text>;
          return <Text>No webhook selects it yet.</Text>;
        }}
      </QueryView>
      <ShowMore query={query}>Show older webhooks</ShowMore>
    </Section>
  );
}

const COLUMNS: readonly Column<FoundWebhook>[] = [
  {
    name: 'Webhook',
    cell: ({ id, url, name }) => (
      <>
        <Link to="/webhooks/$webhookId" params={{ webhookId: id }}>
          <Cut text={url} lines={2} />
        </Link>
        <Cut text={name} look="small" />
      </>
    ),
  },
  {
    name: 'Event types',
    width: 16,
    cell: ({ eventTypes }) =>
      eventTypes.length === 0 ? 'receives all' : <Cut text={eventTypes.join(', ')} lines={2} />,
  },
];
