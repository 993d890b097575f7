import { Button, Group, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../api/client.ts';
import {
  cancellationQuery,
  planQuery,
  resendMatching,
  startCancellation,
} from '../api/matching.ts';
import type { UndeliveredFilter } from '../api/messages.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Failed, QueryView } from '../parts/states.tsx';
import { countText } from '../parts/time-words.ts';
import { useRights } from '../session/session-context.ts';
import { ResendProgress } from './resend-progress.tsx';

/** Cancels or resends all deliveries that the filters of the list select, after a question that shows the plan. */
export function AllThatMatch({ filter }: { filter: UndeliveredFilter }) {
  const { canControl, canResend } = useRights();
  const { status = 'pending', ...narrowing } = filter;
  const isNarrowed = Object.values(narrowing).some((each) => each !== undefined);
  // The gateway refuses a filter that selects everything.
  if (!isNarrowed) return null;
  // A plan and a progress are of these filters.
  const key = JSON.stringify(filter);
  if (status === 'pending') return canControl ? <CancelAll key={key} filter={filter} /> : null;
  return canResend ? <ResendAll key={key} filter={filter} /> : null;
}

function CancelAll({ filter }: { filter: UndeliveredFilter }) {
  const client = useQueryClient();
  const start = useMutation({
    mutationFn: () => startCancellation(filter),
    onSuccess: () => void client.invalidateQueries({ queryKey: ['undelivered'] }),
  });
  if (start.data !== undefined) return <CancellationProgress id={start.data.id} />;
  return (
    <Ask
      what="cancel"
      action="Cancel all that match"
      filter={filter}
      consequence="No further attempt of them is made. Of one that is under way, a success still counts. Messages that are sent from now on are delivered, and what is cancelled can be sent again."
      start={start}
    />
  );
}

function ResendAll({ filter }: { filter: UndeliveredFilter }) {
  const start = useMutation({ mutationFn: () => resendMatching(filter) });
  if (start.data !== undefined) return <ResendProgress resendId={start.data.id} />;
  return (
    <Ask
      what="resend"
      action="Resend all that match"
      filter={filter}
      consequence="Each gets one more attempt, oldest first for each webhook. Disabled webhooks get nothing."
      start={start}
    />
  );
}

interface AskProps {
  what: 'cancel' | 'resend';
  action: string;
  filter: UndeliveredFilter;
  consequence: string;
  start: { mutate: () => void; reset: () => void; isPending: boolean; error: Error | null };
}

function Ask({ what, action, filter, consequence, start }: AskProps) {
  const [isOpen, setOpen] = useState(false);
  const plan = useQuery({ ...planQuery(what, filter), enabled: isOpen });
  const close = (): void => {
    setOpen(false);
  };
  return (
    <Group mb="sm">
      <Button
        size="xs"
        variant="default"
        onClick={() => {
          start.reset();
          setOpen(true);
        }}
      >
        {action}
      </Button>
      <Dialog title={`${action}?`} isOpen={isOpen} close={close}>
        <QueryView query={plan} what="the plan">
          {(counted) => <Text mb="xs">{planText(counted)}</Text>}
        </QueryView>
        <Text size="sm">{consequence}</Text>
        {start.error !== null && <Failed error={start.error} what={`${what} all that match`} />}
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={close}>
            Keep it as it is
          </Button>
          <Button
            color={what === 'cancel' ? 'red' : 'blue'}
            disabled={plan.data === undefined || plan.data.deliveries === 0}
            loading={start.isPending}
            onClick={() => {
              start.mutate();
            }}
          >
            {action}
          </Button>
        </Group>
      </Dialog>
    </Group>
  );
}

function planText({ deliveries, webhooks, isComplete }: Schemas['DeliveryPlan']): string {
  const of = (count: number, one: string, several: string): string =>
    `${countText(count)} ${count === 1 ? one : several}`;
  const counted = `${of(deliveries, 'delivery', 'deliveries')} to ${of(webhooks, 'webhook', 'webhooks')}`;
  if (isComplete) return `${counted} match.`;
  return `At least ${counted} match: there are too many to count.`;
}

/** How far a cancellation is. It goes on when this page is closed. */
function CancellationProgress({ id }: { id: string }) {
  const query = useQuery(cancellationQuery(id));
  return (
    <QueryView query={query} what="the progress of the cancellation">
      {({ status, cancelled }) => (
        <Text size="sm" mb="sm" role="status">
          The cancellation {status === 'done' ? 'is done' : 'is running; you may leave this page'}:{' '}
          {countText(cancelled)} {cancelled === 1 ? 'delivery is' : 'deliveries are'} cancelled.
        </Text>
      )}
    </QueryView>
  );
}
