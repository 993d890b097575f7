import { Button, Group, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { answerOf, api, type Schemas } from '../../api/client.ts';
import { cancelWords } from '../../api/words.ts';
import { Failed } from '../../parts/states.tsx';
import { DeliveryStatus } from '../../parts/status.tsx';
import { Copyable } from '../../parts/values.tsx';
import { useRights } from '../../session/session-context.ts';
import { AttemptLine } from './attempt-line.tsx';
import { WhatFollows } from './what-follows.tsx';
import styles from './messages.module.css';

interface DeliveryCardProps {
  delivery: Schemas['Delivery'];
  /** Where it goes; the id of the webhook until the URL is known. */
  url?: string | undefined;
}

/** A delivery with its attempts on a time line, the oldest first, and what comes next. */
export function DeliveryCard({ delivery, url }: DeliveryCardProps) {
  const { id, webhookId, status, reason, attempts, attemptCount } = delivery;
  const older = attemptCount - attempts.length;
  return (
    <article className={styles.delivery} id={id} aria-label={`Delivery to ${url ?? webhookId}`}>
      <div className={styles.deliveryHead}>
        <div className={styles.deliveryName}>
          <Link to="/webhooks/$webhookId" params={{ webhookId }}>
            {url ?? webhookId}
          </Link>
          <Copyable text={id} name="delivery id" />
        </div>
        <DeliveryStatus status={status} />
        <ResendButton delivery={delivery} />
      </div>
      {reason !== null && <Text size="sm">{cancelWords(reason)}</Text>}
      {older > 0 && <Text size="sm">{older} older attempts are not shown.</Text>}
      <ol className={styles.timeline}>
        {attempts
          .toSorted((one, other) => one.number - other.number)
          .map((attempt) => (
            <AttemptLine key={attempt.id} attempt={attempt} />
          ))}
        <WhatFollows delivery={delivery} />
      </ol>
    </article>
  );
}

function ResendButton({
  delivery: { id, status, messageId },
}: Pick<DeliveryCardProps, 'delivery'>) {
  const { canResend } = useRights();
  const client = useQueryClient();
  const resend = useMutation({
    mutationFn: () =>
      answerOf(
        api.POST('/deliveries/{deliveryId}/resend', {
          params: { path: { deliveryId: id } },
        }),
      ),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ['deliveries', messageId] });
      void client.invalidateQueries({ queryKey: ['delivery', id] });
    },
  });
  if (!canResend) return null;
  if (status === 'pending') {
    return (
      <Text size="xs" c="dimmed">
        Can be resent once no attempt follows
      </Text>
    );
  }
  return (
    <Group gap="xs">
      <Button
        size="xs"
        variant="default"
        loading={resend.isPending}
        onClick={() => {
          resend.mutate();
        }}
      >
        Resend
      </Button>
      {resend.isSuccess && (
        <Text size="sm" role="status">
          One attempt is on its way.
        </Text>
      )}
      {resend.error !== null && <Failed error={resend.error} what="resend" />}
    </Group>
  );
}
