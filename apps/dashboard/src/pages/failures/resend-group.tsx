import { Button, Group, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf, type Schemas } from '../../api/client.ts';
import { failedSinceQuery, failedText } from '../../api/resends.ts';
import { outcomeWords } from '../../api/words.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Failed } from '../../parts/states.tsx';
import { absoluteTime } from '../../parts/time-words.ts';
import { ResendProgress } from '../webhooks/resend-progress.tsx';

interface ResendGroupProps {
  group: Schemas['FailureGroup'];
  since: string;
}

/** Sends again what failed at the webhook of a group with its outcome, after a question that says how many that is. */
export function ResendGroup({ group, since: latest }: ResendGroupProps) {
  /** Fixed when the question is asked: the page goes on. */
  const [since, setSince] = useState<string | null>(null);
  const start = useMutation({
    mutationFn: (from: string) => resendFailed(group, from),
    onSuccess: () => {
      setSince(null);
    },
  });
  if (start.data !== undefined) return <ResendProgress resendId={start.data.id} />;
  return (
    <>
      <Button
        size="xs"
        variant="default"
        onClick={() => {
          start.reset();
          setSince(latest);
        }}
      >
        Resend group
      </Button>
      <Dialog
        title="Send failed deliveries again?"
        isOpen={since !== null}
        close={() => {
          setSince(null);
        }}
      >
        {since !== null && <Question group={group} since={since} />}
        {start.error !== null && <Failed error={start.error} what="start the resend" />}
        <Group justify="flex-end" mt="md">
          <Button
            loading={start.isPending}
            onClick={() => {
              if (since !== null) start.mutate(since);
            }}
          >
            Send them again
          </Button>
        </Group>
      </Dialog>
    </>
  );
}

function resendFailed(
  { webhookId, outcome }: Schemas['FailureGroup'],
  since: string,
): Promise<Schemas['Resend']> {
  const params = { path: { webhookId } };
  // No group is of successes.
  const body = { since, ...(outcome !== 'success' && { outcome }) };
  return dataOf(api.POST('/webhooks/{webhookId}/resend-failed', { params, body }));
}

function Question({ group: { webhookId, url, outcome }, since }: ResendGroupProps) {
  const { data, error } = useQuery(failedSinceQuery(webhookId, since));
  return (
    <>
      {error !== null && <Failed error={error} what="count what failed" />}
      <Text size="sm">
        {data === undefined ? 'Counting what failed …' : failedText(data)} to {url} ended exhausted
        or cancelled, of messages since {absoluteTime(Date.parse(since))}. Those whose last attempt
        ended with “{outcomeWords(outcome)}” will get one attempt each, oldest first.
      </Text>
      <Text size="sm" mt="xs">
        What failed otherwise, is pending or was delivered is not touched.
      </Text>
    </>
  );
}
