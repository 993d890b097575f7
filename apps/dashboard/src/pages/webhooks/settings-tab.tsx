import { Alert, Button, Group, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { answerOf, api, dataOf, type Schemas } from '../../api/client.ts';
import { toFailure } from '../../api/failure.ts';
import { webhookQuery } from '../../api/webhooks.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Section } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { changesIn, hasField } from './webhook-fields.ts';
import { WebhookFormFields } from './webhook-form.tsx';
import styles from './webhooks.module.css';

type Webhook = Schemas['WebhookWithAuth'];

export function SettingsTab({ webhook }: { webhook: Webhook }) {
  const { filled, said, fill } = useFilled(webhook);
  const update = useUpdate(webhook.id, (stored) => {
    fill(stored ?? filled, 'Saved. Dispatchers use it within two seconds.');
  });
  const { error, isPending } = update;
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        update.mutate(changesIn(new FormData(event.currentTarget), filled));
      }}
    >
      {error !== null && <Failed error={error} what="change the webhook" isAtField={hasField} />}
      {/* New fields after each save: secrets that were typed do not stay in the page. */}
      <WebhookFormFields
        key={said.times}
        stored={filled}
        problems={error === null ? [] : toFailure(error).problems}
      />
      {webhook.updatedAt !== filled.updatedAt && !isPending && (
        <ChangedMeanwhile
          reload={() => {
            update.reset();
            fill(webhook, 'The fields show what is stored now.');
          }}
        />
      )}
      <Group>
        <Button type="submit" loading={isPending}>
          Save changes
        </Button>
        {error === null && !isPending && <Said key={said.times} text={said.text} />}
      </Group>
      <DeleteWebhook webhookId={webhook.id} />
    </form>
  );
}

/**
 * Keeps the webhook that the fields were filled with. What was typed is compared with that one: beside a newer one,
 * fields that were not touched would look changed, and a save would undo what somebody else changed.
 */
function useFilled(webhook: Webhook) {
  const [filled, setFilled] = useState(webhook);
  const [said, setSaid] = useState({ text: '', times: 0 });
  const fill = (stored: Webhook, text: string): void => {
    setFilled(stored);
    setSaid(({ times }) => ({ text, times: times + 1 }));
  };
  return { filled, said, fill };
}

/** Saves changes, and then passes on what is stored. */
function useUpdate(webhookId: string, onSaved: (stored: Webhook | undefined) => void) {
  const client = useQueryClient();
  const params = { path: { webhookId } };
  return useMutation({
    // What was sent may have secrets.
    gcTime: 0,
    mutationFn: (body: Schemas['UpdateWebhook']) =>
      dataOf(api.PUT('/webhooks/{webhookId}', { params, body })),
    onSuccess: async () => {
      await client.invalidateQueries();
      onSaved(client.getQueryData(webhookQuery(webhookId).queryKey));
    },
  });
}

function ChangedMeanwhile({ reload }: { reload: () => void }) {
  return (
    <Alert color="blue" variant="light" role="status" title="Somebody changed this webhook">
      <Text size="sm">
        The fields show it as it was before. Saving changes only the fields that you changed.
      </Text>
      <Button size="xs" variant="default" mt="xs" onClick={reload}>
        Reload the fields
      </Button>
    </Alert>
  );
}

/** What was done. New fields took the place of the one with the focus, which would be lost. */
function Said({ text }: { text: string }) {
  const ref = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    if (text !== '' && document.activeElement === document.body) ref.current?.focus();
  }, [text]);
  return (
    text !== '' && (
      <Text ref={ref} size="sm" role="status" tabIndex={-1}>
        {text}
      </Text>
    )
  );
}

function DeleteWebhook({ webhookId }: { webhookId: string }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  return (
    <Section title="Delete">
      <Text size="sm">
        Deleting cancels what is pending. Messages and deliveries stay readable; the webhook cannot
        be brought back.
      </Text>
      <Group>
        <Confirm
          action="Delete webhook"
          consequence="Its pending deliveries will be cancelled, and later messages will not come here. Its past messages stay readable."
          perform={() =>
            answerOf(api.DELETE('/webhooks/{webhookId}', { params: { path: { webhookId } } }))
          }
          onDone={() => {
            void client.invalidateQueries({ queryKey: ['webhooks'] });
            void navigate({ to: '/webhooks' });
          }}
        />
      </Group>
    </Section>
  );
}
