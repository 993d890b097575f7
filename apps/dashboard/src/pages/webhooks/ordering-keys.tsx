import { Group, Text } from '@mantine/core';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { resendDelivery } from '../../api/messages.ts';
import { orderingKeysQuery, skipOrderingKey } from '../../api/webhooks.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Section } from '../../parts/page.tsx';
import { QueryView, ShowMore } from '../../parts/states.tsx';
import { Status } from '../../parts/status.tsx';
import { type Column, Rows, WIDTHS } from '../../parts/table.tsx';
import { countText } from '../../parts/time-words.ts';
import { Copyable, None, When } from '../../parts/values.tsx';
import { useRights } from '../../session/session-context.ts';

type OrderingKey = Schemas['OrderingKey'];

/** The gateway counts no further. */
const MOST_COUNTED = 1_000;

/** The ordering keys of a webhook whose deliveries wait for an earlier one. Most webhooks have no order, and no section. */
export function OrderingKeys({ webhook }: { webhook: Schemas['WebhookWithAuth'] }) {
  const { id, ordering, blockedKeys } = webhook;
  if (ordering === 'none' && blockedKeys === 0) return null;
  return <WaitingKeys webhookId={id} />;
}

function WaitingKeys({ webhookId }: { webhookId: string }) {
  const query = useInfiniteQuery(orderingKeysQuery(webhookId));
  const columns = useColumns(webhookId);
  return (
    <Section title="Ordering keys">
      <QueryView query={query} what="the ordering keys">
        {({ pages }) => {
          const rows = pages.flatMap(({ data }) => data);
          return rows.length === 0 ? (
            <Text size="sm">No delivery waits for an earlier one with the same key.</Text>
          ) : (
            <Rows
              caption="Ordering keys"
              columns={columns}
              rows={rows}
              keyOf={({ orderingKey }) => orderingKey}
            />
          );
        }}
      </QueryView>
      <ShowMore query={query}>Show more keys</ShowMore>
    </Section>
  );
}

function useColumns(webhookId: string): Column<OrderingKey>[] {
  return [
    {
      name: 'Key',
      cell: ({ orderingKey }) => <Copyable text={orderingKey} name="ordering key" />,
    },
    {
      name: 'State',
      width: WIDTHS.status,
      cell: ({ state }) => (
        <Status tone={state === 'blocked' ? 'bad' : 'waiting'}>{state}</Status>
      ),
    },
    { name: 'Waiting', width: WIDTHS.number, isNumber: true, cell: waitingText },
    {
      name: 'Next attempt',
      width: WIDTHS.time,
      cell: ({ nextAttemptAt }) =>
        nextAttemptAt === null ? <None /> : <When at={nextAttemptAt} />,
    },
    {
      name: 'First delivery',
      cell: (key) => <Head webhookId={webhookId} of={key} />,
    },
  ];
}

function waitingText({ waiting }: OrderingKey): string {
  return waiting >= MOST_COUNTED ? `${countText(waiting)} or more` : countText(waiting);
}

interface HeadProps {
  webhookId: string;
  of: OrderingKey;
}

/** The message at which a key waits, and what frees a blocked one. */
function Head({ webhookId, of: { orderingKey, state, headDeliveryId, headMessageId } }: HeadProps) {
  const client = useQueryClient();
  const { canResend, canControl } = useRights();
  const reload = (): void => {
    void client.invalidateQueries({ queryKey: ['orderingKeys', webhookId] });
    void client.invalidateQueries({ queryKey: ['webhook', webhookId] });
  };
  const about = { kind: 'the first delivery of', name: orderingKey };
  return (
    <Group gap="xs">
      <Link to="/messages/$messageId" params={{ messageId: headMessageId }}>
        Show message
      </Link>
      {state === 'blocked' && canResend && (
        <Confirm
          action="Send again"
          about={about}
          consequence="The delivery is attempted once more. Its success lets those behind it go on."
          perform={() => resendDelivery(headDeliveryId)}
          onDone={reload}
          isDangerous={false}
          size="xs"
        />
      )}
      {state === 'blocked' && canControl && (
        <Confirm
          action="Skip"
          about={about}
          consequence="Those behind it go on without it. It stays exhausted, and can be sent again later, out of order."
          perform={() => skipOrderingKey(webhookId, { orderingKey, deliveryId: headDeliveryId })}
          onDone={reload}
          size="xs"
        />
      )}
    </Group>
  );
}
