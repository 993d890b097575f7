import { Button, Group } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { api, dataOf, type Schemas } from '../../api/client.ts';
import { toFailure } from '../../api/failure.ts';
import { AppSelect } from '../../parts/filters.tsx';
import { LinkButton, Page } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { useSession } from '../../session/session-context.ts';
import { bodyIn, hasField } from './webhook-fields.ts';
import { WebhookFormFields } from './webhook-form.tsx';
import styles from './webhooks.module.css';

const route = getRouteApi('/webhooks/new');

export function NewWebhookPage() {
  const { appId: asked, eventType } = route.useSearch();
  const { key, portal } = useSession();
  const confinedTo = portal?.app.id ?? key.appId;
  const [appId, setAppId] = useState(asked ?? confinedTo ?? '');
  const client = useQueryClient();
  const navigate = route.useNavigate();
  const create = useMutation({
    // What was sent may have secrets.
    gcTime: 0,
    mutationFn: (body: Schemas['CreateWebhook']) => dataOf(api.POST('/webhooks', { body })),
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
          create.mutate({ ...bodyIn(new FormData(event.currentTarget)), appId });
        }}
      >
        {error !== null && <Failed error={error} what="create the webhook" isAtField={hasField} />}
        {confinedTo === null && <AppSelect value={appId} onChange={setAppId} />}
        <WebhookFormFields
          stored={null}
          appId={appId}
          eventType={eventType}
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
