import { Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { PORTAL_COMPANY_ID } from '../../api/addresses.ts';
import type { FoundWebhook } from '../../api/webhooks.ts';
import { type Column, Rows } from '../../parts/table.tsx';
import { Copyable } from '../../parts/values.tsx';
import { useSession } from '../../session/session-context.ts';
import { HealthRatio, HealthState, LastAttempt } from './health-cells.tsx';
import styles from './webhooks.module.css';

/** Webhooks, each with how it does now. */
export function WebhookRows({ webhooks }: { webhooks: readonly FoundWebhook[] }) {
  const { key } = useSession();
  const columns = key.appId === null ? [WEBHOOK, APP, ...OTHERS] : [WEBHOOK, ...OTHERS];
  return <Rows caption="Webhooks" columns={columns} rows={webhooks} keyOf={({ id }) => id} />;
}

const WEBHOOK: Column<FoundWebhook> = {
  name: 'Webhook',
  cell: ({ id, url, name, uid }) => (
    <>
      <Link to="/webhooks/$webhookId" params={{ webhookId: id }} className={styles.url}>
        {url}
      </Link>
      <Text size="xs" c="dimmed">
        {name}
      </Text>
      {PORTAL_COMPANY_ID === null && uid !== null && <Copyable text={uid} name="uid" />}
    </>
  ),
};

const APP: Column<FoundWebhook> = {
  name: 'App',
  cell: ({ appId, appName }) =>
    appId === null ? (
      'all of its environment'
    ) : (
      <Link to="/apps/$appId" params={{ appId }}>
        {appName}
      </Link>
    ),
};

const OTHERS: readonly Column<FoundWebhook>[] = [
  { name: 'State', cell: (webhook) => <HealthState webhook={webhook} /> },
  { name: 'Success', cell: ({ id }) => <HealthRatio webhookId={id} /> },
  { name: 'Last attempt', cell: ({ id }) => <LastAttempt webhookId={id} /> },
  {
    name: 'Event types',
    cell: ({ eventTypes }) => (eventTypes.length === 0 ? 'receives all' : eventTypes.join(', ')),
  },
];
