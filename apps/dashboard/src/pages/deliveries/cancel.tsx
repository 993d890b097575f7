import { Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { cancelDelivery, cancelPending } from '../../api/messages.ts';
import { healthQuery } from '../../api/webhooks.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Section } from '../../parts/page.tsx';
import { countText } from '../../parts/time-words.ts';

/** The gateway counts no further. */
const MOST_COUNTED = 10_000;

/** Ends what is pending at a webhook, after a question that says how many deliveries that is. */
export function CancelPending({ webhookId }: { webhookId: string }) {
  const client = useQueryClient();
  const { data: health } = useQuery(healthQuery(webhookId));
  const reload = (): void => {
    void client.invalidateQueries({ queryKey: ['health', webhookId] });
    void client.invalidateQueries({ queryKey: ['undelivered'] });
  };
  return (
    <Section title="Pending deliveries">
      <Text size="sm">
        {health === undefined ? 'Counting what is pending …' : pendingText(health.backlog)}{' '}
        <Link to="/deliveries" search={{ webhookId }}>
          Show them
        </Link>
      </Text>
      <Confirm
        action="Cancel pending deliveries"
        consequence={`${health === undefined ? 'All pending deliveries' : pendingText(health.backlog)} No further attempt of them is made. Messages that are sent from now on are delivered, and what is cancelled can be sent again.`}
        perform={() => cancelPending(webhookId)}
        onDone={reload}
      />
    </Section>
  );
}

function pendingText(count: number): string {
  if (count >= MOST_COUNTED) return `${countText(MOST_COUNTED)} deliveries or more are pending.`;
  return count === 1 ? 'One delivery is pending.' : `${countText(count)} deliveries are pending.`;
}

/** Ends one pending delivery, after a question. */
export function CancelOne({ delivery }: { delivery: Schemas['ListedDelivery'] }) {
  const client = useQueryClient();
  const { id, status } = delivery;
  if (status !== 'pending') return null;
  return (
    <Confirm
      action="Cancel"
      about={{ kind: 'delivery', name: id }}
      consequence="No further attempt is made. If one is under way, its success still counts."
      perform={() => cancelDelivery(id)}
      onDone={() => void client.invalidateQueries({ queryKey: ['undelivered'] })}
    />
  );
}
