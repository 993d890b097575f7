import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schemas } from '../../api/client.ts';
import { healthQuery } from '../../api/queries.ts';
import { useNowMs } from '../../parts/time/now.ts';
import { When } from '../../parts/time/when.tsx';
import styles from './messages.module.css';

/** The last entry of the time line of a delivery: when and why it goes on. */
export function WhatFollows({ delivery }: { delivery: Schemas['Delivery'] }) {
  const { status, nextAttemptAt, attempts, webhookId } = delivery;
  const nowMs = useNowMs();
  if (status !== 'pending') return null;
  const isLater = nextAttemptAt !== null && Date.parse(nextAttemptAt) > nowMs;
  return (
    <li className={styles.next}>
      {isLater ? (
        <span>
          Next attempt <When at={nextAttemptAt} />
        </span>
      ) : (
        <DueAttempt
          name={attempts.length === 0 ? 'The first attempt' : 'The next attempt'}
          dueAt={nextAttemptAt}
          webhookId={webhookId}
        />
      )}
    </li>
  );
}

const ASK_AGAIN_MS = 5_000;

interface DueAttemptProps {
  name: string;
  dueAt: string | null;
  webhookId: string;
}

/** An attempt whose time has come waits when its endpoint is not to get any now. */
function DueAttempt({ name, dueAt, webhookId }: DueAttemptProps) {
  const { data: health } = useQuery({ ...healthQuery(webhookId), refetchInterval: ASK_AGAIN_MS });
  const waits = health === undefined ? null : whyItWaits(health, webhookId);
  if (waits === null) return <span>{name} is on its way.</span>;
  return (
    <span>
      {name} {dueAt !== null && <DueSince at={dueAt} />} waits: {waits}
    </span>
  );
}

function DueSince({ at }: { at: string }) {
  return (
    <>
      was due <When at={at} /> and
    </>
  );
}

/** Null when nothing holds the endpoint back. */
function whyItWaits(
  { circuit, probeAt, heldUntil }: Schemas['WebhookHealth'],
  webhookId: string,
): ReactNode {
  const endpoint = (
    <Link to="/webhooks/$webhookId" params={{ webhookId }}>
      the endpoint
    </Link>
  );
  if (circuit === 'open') {
    return (
      <>
        the circuit of {endpoint} is open. It gets one attempt <When at={probeAt} />, and a success
        lets all others go on.
      </>
    );
  }
  if (circuit === 'half_open') {
    return <>the circuit of {endpoint} is half open. Its next attempt decides.</>;
  }
  if (heldUntil === null) return null;
  return (
    <>
      {endpoint} asked for a pause that ends <When at={heldUntil} />.
    </>
  );
}
