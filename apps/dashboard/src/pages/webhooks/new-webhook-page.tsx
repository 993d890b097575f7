import { Button, Group } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { api, dataOf, type Schemas } from '../../api/client.ts';
import { toFailure } from '../../api/failure.ts';
import { AppSelect } from '../../parts/select/app-select.tsx';
import { LinkButton } from '../../parts/link-button.tsx';
import { Page } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { useSession } from '../../session/session-context.ts';
import { NEW_WEBHOOK, readWebhookForm } from './webhook-fields.ts';
import { WebhookFormFields } from './webhook-form.tsx';
import styles from './webhooks.module.css';

const route = getRouteApi('/webhooks/new');

export function NewWebhookPage() {
  const { appId: asked } = route.useSearch();
  const { key, portal } = useSession();
  const confinedTo = portal?.app.id ?? key.appId;
  const [appId, setAppId] = useState(asked ?? confinedTo ?? '');
  const client = useQueryClient();
  const navigate = route.useNavigate();
  const create = useMutation({
    mutationFn: (body: Schemas['CreateWebhook']) => dataOf(api.POST('/api/v1/webhooks', { body })),
    onSuccess: ({ id }) => {
      void client.invalidateQueries({ queryKey: ['webhooks'] });
      void navigate({
        to: '/webhooks/$webhookId',
        params: { webhookId: id },
        search: { tab: 'testing' },
      });
    },
  });
  const { error } = create;
  return (
    <Page title="Create a webhook">
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate({ ...readWebhookForm(new FormData(event.currentTarget)), appId });
        }}
      >
        {error !== null && <Failed error={error} what="create the webhook" />}
        {confinedTo === null && <AppSelect value={appId} onChange={setAppId} />}
        <WebhookFormFields
          fields={NEW_WEBHOOK}
          problems={error === null ? [] : toFailure(error).problems}
        />
        <Group>
          <Button type="submit" loading={create.isPending} disabled={appId === ''}>
            Create webhook
          </Button>
          <LinkButton to="/webhooks" variant="default">
            Cancel
          </LinkButton>
        </Group>
      </form>
    </Page>
  );
}
