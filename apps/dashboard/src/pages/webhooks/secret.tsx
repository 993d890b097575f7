import { Button, Group, NativeSelect, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf, type Schemas } from '../../api/client.ts';
import { secretQuery, webhookQuery } from '../../api/queries.ts';
import { Copyable } from '../../parts/copy/copyable.tsx';
import { Section } from '../../parts/page.tsx';
import { QueryView } from '../../parts/query-view.tsx';
import { Failed } from '../../parts/states.tsx';
import { When } from '../../parts/time/when.tsx';
import { useRights } from '../../session/session-context.ts';
import { valueTo } from '../../parts/value-to.ts';

/** The secret that verifies deliveries: hidden until it is asked for, and its rotation. */
export function Secret({ webhook }: { webhook: Schemas['WebhookWithAuth'] }) {
  const { canSeeSecrets, canManageWebhooks } = useRights();
  const [isShown, setShown] = useState(false);
  if (!canSeeSecrets) return null;
  return (
    <Section title="Secret">
      {isShown ? (
        <ShownSecret webhookId={webhook.id} />
      ) : (
        <Text size="sm" ff="monospace">
          whsec_••••••••••••
        </Text>
      )}
      <Group gap="xs">
        <Button
          size="xs"
          variant="default"
          onClick={() => {
            setShown(!isShown);
          }}
        >
          {isShown ? 'Hide secret' : 'Show secret'}
        </Button>
      </Group>
      {canManageWebhooks && <Rotation webhookId={webhook.id} />}
    </Section>
  );
}

function ShownSecret({ webhookId }: { webhookId: string }) {
  const query = useQuery(secretQuery(webhookId));
  return (
    <QueryView query={query} what="the secret">
      {(secret) => <Copyable text={secret} name="secret" />}
    </QueryView>
  );
}

const GRACES = [
  { label: 'old secret ends at once', value: '0' },
  { label: 'old secret works for 1 hour', value: '3600' },
  { label: 'old secret works for 1 day', value: '86400' },
  { label: 'old secret works for 7 days', value: '604800' },
];

function Rotation({ webhookId }: { webhookId: string }) {
  const client = useQueryClient();
  const [grace, setGrace] = useState('86400');
  const [graceEndsAt, setGraceEndsAt] = useState<string | null>(null);
  const rotation = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST('/api/v1/webhooks/{webhookId}/rotate-secret', {
          params: { path: { webhookId } },
          body: { graceSeconds: Number(grace) },
        }),
      ),
    onSuccess: () => {
      setGraceEndsAt(new Date(Date.now() + Number(grace) * 1_000).toISOString());
      void client.invalidateQueries({ queryKey: webhookQuery(webhookId).queryKey });
    },
  });
  return (
    <>
      <Group gap="xs" align="end">
        <NativeSelect
          size="xs"
          label="On rotation"
          data={GRACES}
          value={grace}
          onChange={valueTo(setGrace)}
        />
        <Button
          size="xs"
          variant="default"
          loading={rotation.isPending}
          onClick={() => {
            rotation.mutate();
          }}
        >
          Rotate secret
        </Button>
      </Group>
      {rotation.error !== null && <Failed error={rotation.error} what="rotate the secret" />}
      {graceEndsAt !== null && (
        <Text size="sm" role="status">
          There is a new secret. Both sign deliveries until the grace of the old one ends:{' '}
          <When at={graceEndsAt} />.
        </Text>
      )}
    </>
  );
}
