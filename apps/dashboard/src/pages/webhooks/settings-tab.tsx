import { Button, Group, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { api, dataOf, answerOf, type Schemas } from '../../api/client.ts';
import { toFailure } from '../../api/failure.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Section } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { changedFields } from './webhook-fields.ts';
import { WebhookFormFields } from './webhook-form.tsx';
import styles from './webhooks.module.css';

export function SettingsTab({ webhook }: { webhook: Schemas['WebhookWithAuth'] }) {
  const client = useQueryClient();
  const params = { path: { webhookId: webhook.id } };
  const update = useMutation({
    mutationFn: (body: Schemas['UpdateWebhook']) =>
      dataOf(api.PUT('/api/v1/webhooks/{webhookId}', { params, body })),
    onSuccess: () => client.invalidateQueries(),
  });
  const { error } = update;
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        update.mutate(changedFields(new FormData(event.currentTarget), webhook));
      }}
    >
      {error !== null && <Failed error={error} what="change the webhook" />}
      <WebhookFormFields
        fields={webhook}
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
