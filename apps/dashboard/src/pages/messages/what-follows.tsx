import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { circuitsQuery } from '../../api/overview.ts';
import { useNowMs, When } from '../../parts/values.tsx';
import styles from './messages.module.css';

/** The last entry of the time line of a delivery: when and why it goes on. */
export function WhatFollows({ delivery }: { delivery: Schemas['Delivery'] }) {
  const { status, nextAttemptAt, attempts, webhookId, waiting, waitingSince } = delivery;
  const nowMs = useNowMs();
  if (status !== 'pending') return null;
  const isLater = nextAttemptAt !== null && Date.parse(nextAttemptAt) > nowMs;
  const name = attempts.length === 0 ? 'The first attempt' : 'The next attempt';
  return (
    <li className={styles.next}>
      {waiting === 'hold' ? (
        <span>
          {name} waits for the end of a hold, since <When at={waitingSince} />
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
