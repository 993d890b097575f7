import { Button, Group, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { api, dataOf, type Schemas } from '../../api/client.ts';
import { useLiveReload } from '../../api/live.ts';
import { deliveryQuery } from '../../api/messages.ts';
import { curlOf } from '../../api/recorded-calls.ts';
import { Section } from '../../parts/page.tsx';
import { Failed, QueryView } from '../../parts/states.tsx';
import { CodeBlock } from '../../parts/values.tsx';
import { useSession } from '../../session/session-context.ts';
import { DeliveryCard } from '../messages/delivery-card.tsx';
import styles from './webhooks.module.css';

/** Sends a small test message and shows what the endpoint answered. */
export function TestingTab({ webhook: { id, disabled } }: { webhook: Schemas['WebhookWithAuth'] }) {
  const { kind } = useSession();
  const test = useMutation({
    mutationFn: () =>
      dataOf(api.POST('/webhooks/{webhookId}/test', { params: { path: { webhookId: id } } })),
  });
  return (
    <div className={styles.rail}>
      <Section title="Send a test message">
        <Text size="sm">
          {disabled
            ? 'The webhook is disabled. Enable it in its settings, then test it.'
            : 'The endpoint gets a small JSON object, signed like every message. Its answer is shown here.'}
        </Text>
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
            text={curlOf({ method: 'POST', path: `/api/v1/webhooks/${id}/test` })}
          />
        </Section>
      )}
    </div>
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
