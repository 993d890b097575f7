import { Button, Group, NativeSelect, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf, given, type Schemas } from '../../api/client.ts';
import { toFailure } from '../../api/failure.ts';
import { secretQuery, webhookQuery } from '../../api/webhooks.ts';
import { errorIn, isAtOneOf, valueTo } from '../../parts/form-fields.ts';
import { Section } from '../../parts/page.tsx';
import { Failed, QueryView } from '../../parts/states.tsx';
import { Copyable, When } from '../../parts/values.tsx';
import { useRights } from '../../session/session-context.ts';
import { OwnSecretInput } from './auth-fields.tsx';
import styles from './webhooks.module.css';

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
    // What was sent may have a secret.
    gcTime: 0,
    mutationFn: (secret: string) =>
      dataOf(
        api.POST('/webhooks/{webhookId}/rotate-secret', {
          params: { path: { webhookId } },
          body: { graceSeconds: Number(grace), ...given({ secret }) },
        }),
      ),
    onSuccess: () => {
      setGraceEndsAt(new Date(Date.now() + Number(grace) * 1_000).toISOString());
      void client.invalidateQueries({ queryKey: webhookQuery(webhookId).queryKey });
    },
  });
  return (
    <>
      <RotationForm
        // An empty field again: a secret that was typed does not stay in the page.
        key={graceEndsAt}
        grace={grace}
        setGrace={setGrace}
        rotate={rotation.mutate}
        error={rotation.error}
        isPending={rotation.isPending}
      />
      {graceEndsAt !== null && (
        <Text size="sm" role="status">
          There is a new secret. Both sign deliveries until the grace of the old one ends:{' '}
          <When at={graceEndsAt} />.
        </Text>
      )}
    </>
  );
}

interface RotationFormProps {
  grace: string;
  setGrace: (seconds: string) => void;
  /** Takes the secret that was typed; '' for one that is generated. */
  rotate: (secret: string) => void;
  error: Error | null;
  isPending: boolean;
}

function RotationForm({ grace, setGrace, rotate, error, isPending }: RotationFormProps) {
  return (
    <>
      <form
        className={styles.rail}
        onSubmit={(event) => {
          event.preventDefault();
          const secret = new FormData(event.currentTarget).get('secret');
          rotate(typeof secret === 'string' ? secret.trim() : '');
        }}
      >
        <NativeSelect
          size="xs"
          label="On rotation"
          data={GRACES}
          value={grace}
          onChange={valueTo(setGrace)}
        />
        <OwnSecretInput
          error={error === null ? undefined : errorIn(toFailure(error).problems, 'secret')}
        />
        <Group>
          <Button type="submit" size="xs" variant="default" loading={isPending}>
            Rotate secret
          </Button>
        </Group>
      </form>
      {error !== null && <Failed error={error} what="rotate the secret" isAtField={hasField} />}
    </>
  );
}

const hasField = isAtOneOf(['secret']);
