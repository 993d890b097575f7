import { Button, Group, Text, VisuallyHidden } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Schemas } from '../../api/client.ts';
import { cancelDelivery, resendDelivery } from '../../api/messages.ts';
import { circuitsQuery } from '../../api/overview.ts';
import type { FoundWebhook } from '../../api/webhooks.ts';
import { cancelWords, outcomeWords, webhookWords } from '../../api/words.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Failed } from '../../parts/states.tsx';
import { DeliveryStatus } from '../../parts/status.tsx';
import { durationText } from '../../parts/time-words.ts';
import { CodeBlock, Copyable, Cut, useNowMs, When } from '../../parts/values.tsx';
import { useRights } from '../../session/session-context.ts';
import styles from './messages.module.css';

interface DeliveryCardProps {
  delivery: Schemas['Delivery'];
  /** Where it goes; the id of the webhook until it is known. */
  webhook?: FoundWebhook | undefined;
  /** The payload of its message is erased, as far as that is known: it cannot be sent again. */
  isErased?: boolean;
}

/** A delivery with its attempts on a time line, the oldest first, and what comes next. */
export function DeliveryCard({ delivery, webhook, isErased = false }: DeliveryCardProps) {
  const { id, webhookId, status, reason, attempts, attemptCount } = delivery;
  const older = attemptCount - attempts.length;
  const url = webhook?.url ?? webhookId;
  const named = webhook && webhookWords(webhook);
  return (
    <article className={styles.delivery} id={id} aria-label={`Delivery to ${url}`}>
      <div className={styles.deliveryHead}>
        <div className={styles.deliveryName}>
          <Link to="/webhooks/$webhookId" params={{ webhookId }}>
            <Cut text={url} lines={2} />
          </Link>
          {named?.address && <Cut text={named.name} look="small" />}
          <Copyable text={id} name="delivery id" />
        </div>
        <DeliveryStatus status={status} />
        <Actions delivery={delivery} isErased={isErased} />
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

/** What can be done with the delivery as it is now. */
function Actions({
  delivery,
  isErased,
}: Required<Pick<DeliveryCardProps, 'delivery' | 'isErased'>>) {
  const { canResend, canControl } = useRights();
  const client = useQueryClient();
  const { id, status, messageId } = delivery;
  const refresh = (): void => {
    for (const queryKey of [
      ['message', messageId],
      ['deliveries', messageId],
      ['delivery', id],
    ])
      void client.invalidateQueries({ queryKey });
  };
  if (status === 'pending' && canControl) {
    return (
      <Confirm
        action="Cancel"
        size="xs"
        about={{ kind: 'delivery', name: id }}
        consequence="No further attempt is made. If one is under way, its success still counts."
        perform={() => cancelDelivery(id)}
        onDone={refresh}
      />
    );
  }
  if (status === 'pending' || !canResend) return null;
  if (isErased) {
    return (
      <Text size="xs" c="dimmed">
        Its payload is erased
      </Text>
    );
  }
  return <ResendButton id={id} onDone={refresh} />;
}

function ResendButton({ id, onDone }: { id: string; onDone: () => void }) {
  const resend = useMutation({ mutationFn: () => resendDelivery(id), onSuccess: onDone });
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

type Attempt = Schemas['Delivery']['attempts'][number];

/** One attempt: when, how it ended in words, how long it took, and what the endpoint answered. */
function AttemptLine({ attempt }: { attempt: Attempt }) {
  const { number, outcome, statusCode, failureReason, durationMs, createdAt, resend } = attempt;
  const [isOpen, setOpen] = useState(false);
  return (
    <li className={styles.attempt} data-good={outcome === 'success'} id={attempt.id}>
      <div className={styles.attemptHead}>
        <span>
          <strong>{resend ? `Resend, attempt ${number}` : `Attempt ${number}`}: </strong>
          the endpoint {outcomeWords(outcome, statusCode)}
        </span>
        <span className={styles.attemptFacts}>
          <When at={createdAt} /> · {durationText(durationMs)}
        </span>
        <button
          type="button"
          className={styles.more}
          aria-expanded={isOpen}
          onClick={() => {
            setOpen(!isOpen);
          }}
        >
          {isOpen ? 'Less' : 'Answer and headers'}
          <VisuallyHidden> of attempt {number}</VisuallyHidden>
        </button>
      </div>
      {failureReason !== null && <Text size="sm">{failureReason}</Text>}
      {isOpen && <Exchange attempt={attempt} />}
    </li>
  );
}

function Exchange({
  attempt: { response, responseHeaders, headers, number },
}: {
  attempt: Attempt;
}) {
  return (
    <div className={styles.exchange}>
      <Text size="sm">Answer, its first 4 KiB</Text>
      {response === null || response === '' ? (
        <Text size="sm" c="dimmed">
          There was no body, or it is not stored.
        </Text>
      ) : (
        <CodeBlock name={`Answer to attempt ${number}`} text={response} />
      )}
      {responseHeaders.length > 0 && (
        <CodeBlock
          name={`Headers of the answer to attempt ${number}`}
          text={headerText(responseHeaders)}
        />
      )}
      {headers.length > 0 && (
        <>
          <Text size="sm">Headers that were sent, with credentials masked</Text>
          <CodeBlock name={`Headers of attempt ${number}`} text={headerText(headers)} />
        </>
      )}
    </div>
  );
}

function headerText(headers: Attempt['headers']): string {
  return headers.map(({ key, value }) => `${key}: ${value}`).join('\n');
}

/** The last entry of the time line of a delivery: when and why it goes on. */
function WhatFollows({ delivery }: { delivery: Schemas['Delivery'] }) {
  const { status, nextAttemptAt, attempts, webhookId, waiting, waitingSince } = delivery;
  const nowMs = useNowMs();
  if (status !== 'pending') return null;
  const isLater = nextAttemptAt !== null && Date.parse(nextAttemptAt) > nowMs;
  const name = attempts.length === 0 ? 'The first attempt' : 'The next attempt';
  return (
    <li className={styles.next}>
      {waiting === 'hold' || waiting === 'order' ? (
        <span>
          {name} {WAITS_FOR[waiting]}, since <When at={waitingSince} />
        </span>
      ) : isLater ? (
        <span>
          Next attempt <When at={nextAttemptAt} />
        </span>
      ) : (
        <DueAttempt name={name} dueAt={nextAttemptAt} webhookId={webhookId} />
      )}
    </li>
  );
}

const WAITS_FOR = {
  hold: 'waits for the end of a hold',
  order: 'waits for its key: an earlier delivery with the same ordering key has not ended',
} as const;

interface DueAttemptProps {
  name: string;
  dueAt: string | null;
  webhookId: string;
}

/** An attempt whose time has come waits while the circuit of its endpoint is open. One request tells of all endpoints. */
function DueAttempt({ name, dueAt, webhookId }: DueAttemptProps) {
  const { data: circuits = [] } = useQuery(circuitsQuery());
  const circuit = circuits.find((each) => each.webhookId === webhookId);
  if (circuit === undefined) return <span>{name} is on its way.</span>;
  return (
    <span>
      {name}{' '}
      {dueAt !== null && (
        <>
          was due <When at={dueAt} /> and
        </>
      )}{' '}
      waits: <WhyItWaits circuit={circuit} />
    </span>
  );
}

function WhyItWaits({ circuit }: { circuit: Schemas['OpenCircuit'] }) {
  const { webhookId, probeAt } = circuit;
  const endpoint = (
    <Link to="/webhooks/$webhookId" params={{ webhookId }}>
      the endpoint
    </Link>
  );
  if (circuit.circuit === 'half_open') {
    return <>the circuit of {endpoint} is half open. Its next attempt decides.</>;
  }
  return (
    <>
      the circuit of {endpoint} is open. It gets one attempt <When at={probeAt} />, and a success
      lets all others go on.
    </>
  );
}
