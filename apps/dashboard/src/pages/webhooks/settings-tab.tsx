import { Button, Group, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, dataOf, answerOf, type Schemas } from '../../api/client.ts';
import { toFailure } from '../../api/failure.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Section } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { hasField } from './form/field-errors.ts';
import { changesIn } from './form/webhook-body.ts';
import { WebhookFormFields } from './form/webhook-form.tsx';
import styles from './webhooks.module.css';

export function SettingsTab({ webhook }: { webhook: Schemas['WebhookWithAuth'] }) {
  const client = useQueryClient();
  const params = { path: { webhookId: webhook.id } };
  const [saves, setSaves] = useState(0);
  const update = useMutation({
    // What was sent may have secrets.
    gcTime: 0,
    mutationFn: (body: Schemas['UpdateWebhook']) =>
      dataOf(api.PUT('/api/v1/webhooks/{webhookId}', { params, body })),
    onSuccess: async () => {
      await client.invalidateQueries();
      setSaves((before) => before + 1);
    },
  });
  const { error } = update;
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        update.mutate(changesIn(new FormData(event.currentTarget), webhook));
      }}
    >
      {error !== null && <Failed error={error} what="change the webhook" isAtField={hasField} />}
      {/* New fields after each save: secrets that were typed do not stay in the page. */}
      <WebhookFormFields
        key={saves}
        stored={webhook}
        problems={error === null ? [] : toFailure(error).problems}
      />
      <Group>
        <Button type="submit" loading={update.isPending}>
          Save changes
        </Button>
        {update.isSuccess && (
          <Text size="sm" role="status">
            Saved. Dispatchers use it within two seconds.
          </Text>
        )}
      </Group>
      <DeleteWebhook webhookId={webhook.id} />
    </form>
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
            answerOf(
              api.DELETE('/api/v1/webhooks/{webhookId}', { params: { path: { webhookId } } }),
            )
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
