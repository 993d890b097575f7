import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { useLiveReload } from '../../api/live.ts';
import { statsQuery } from '../../api/overview.ts';
import { healthQuery } from '../../api/webhooks.ts';
import { Facts } from '../../parts/figures.tsx';
import { Section } from '../../parts/page.tsx';
import { QueryView } from '../../parts/states.tsx';
import { countText } from '../../parts/time-words.ts';
import { None, When } from '../../parts/values.tsx';
import { useRights } from '../../session/session-context.ts';
import { HoldControls } from '../hold-controls.tsx';
import { useOwnFacts } from '../own-fields.tsx';
import { AttemptCounts, HealthNow } from './health.tsx';
import { OrderingKeys } from './ordering-keys.tsx';
import { CancelPending, Recover, Replay } from './recover.tsx';
import { Secret } from './secret.tsx';
import { hasSvix } from './webhook-fields.ts';
import styles from './webhooks.module.css';

/** How a webhook does, beside what it is. */
export function OverviewTab({ webhook }: { webhook: Schemas['WebhookWithAuth'] }) {
  const { canResend, canControl } = useRights();
  const { id } = webhook;
  const health = useQuery(healthQuery(id));
  const stats = useQuery(statsQuery({ webhookId: id }));
  useLiveReload(
    (event) => event.kind === 'more' || event.attempt.webhookId === id,
    () => void health.refetch(),
  );
  return (
    <div className={styles.columns}>
      <div className={styles.rail}>
        <Section title="Attempts in the last 24 hours">
          <QueryView query={stats} what="the counts of attempts">
            {({ points }) => <AttemptCounts points={points} />}
          </QueryView>
        </Section>
        <Section title="Now">
          <QueryView query={health} what="the health of the endpoint">
            {(found) => <HealthNow health={found} />}
          </QueryView>
        </Section>
        <OrderingKeys webhook={webhook} />
        <HoldControls kind="webhook" {...webhook} />
        {canResend && <Recover webhook={webhook} />}
        {canControl && <CancelPending webhookId={id} />}
        {canControl && !webhook.disabled && <Replay webhook={webhook} />}
      </div>
      <div className={styles.rail}>
        <WebhookFacts webhook={webhook} />
      </div>
    </div>
  );
}

function WebhookFacts({ webhook }: { webhook: Schemas['WebhookWithAuth'] }) {
  const { id, name, eventTypes, filter, authMethod, createdAt, updatedAt, tls } = webhook;
  const { rateLimitPerSecond, timeoutSeconds, disabledReason } = webhook;
  return (
    <>
      <Facts
        facts={[
          ['Name', name],
          ...(disabledReason === null
            ? []
            : [['Disabled', DISABLED_BECAUSE[disabledReason]] as const]),
          ...useOwnFacts(webhook),
          [
            'Event types',
            eventTypes.length === 0 ? 'Receives all messages of its app' : eventTypes.join(', '),
          ],
          ['Filter', filter === null ? <None key="filter" /> : JSON.stringify(filter)],
          ['Authentication', AUTH_NAMES[authMethod.method]],
          [
            'Rate limit',
            rateLimitPerSecond === null ? (
              <None key="rate" />
            ) : (
              `${countText(rateLimitPerSecond)} per second`
            ),
          ],
          ['Timeout', timeoutSeconds === null ? 'that of the service' : `${timeoutSeconds} s`],
          ...endingFacts(webhook),
          ...orderFacts(webhook),
          ['Headers of Svix', hasSvix(webhook) ? 'are sent too' : 'are not sent'],
          ['TLS', tls === undefined ? 'public authorities' : 'own certificates'],
          [
            'Resends',
            <Link key="resends" to="/resends" search={{ webhookId: id }}>
              show them
            </Link>,
          ],
          ['Created', <When key="created" at={createdAt} />],
          ['Changed', <When key="changed" at={updatedAt} />],
        ]}
      />
      <Secret webhook={webhook} />
    </>
  );
}

/** What ends its deliveries before their schedule does; nothing of it by default. */
function endingFacts({
  maxAttempts,
  finalStatusCodes,
  onGone,
  obeyControlHeaders,
}: Schemas['WebhookWithAuth']): (readonly [string, string])[] {
  return [
    ['Attempts', maxAttempts === null ? 'all of the schedule' : `at most ${maxAttempts}`],
    ...(finalStatusCodes === null
      ? []
      : [['Not tried again after', finalStatusCodes.join(', ')] as const]),
    ...(onGone === 'disable' ? [['Status 410', 'disables the webhook'] as const] : []),
    ...(obeyControlHeaders ? [['Control headers', 'are obeyed'] as const] : []),
  ];
}

/** Nothing by default. */
function orderFacts({ ordering }: Schemas['WebhookWithAuth']): (readonly [string, string])[] {
  return ordering === 'none' ? [] : [['Order', ORDER_WORDS[ordering]]];
}

const ORDER_WORDS = {
  block: 'by ordering key; an exhausted delivery blocks its key',
  skip: 'by ordering key; on behind an exhausted delivery',
} as const;

const DISABLED_BECAUSE: Record<NonNullable<Schemas['Webhook']['disabledReason']>, string> = {
  gone: 'its endpoint answered 410',
  control_header: 'its endpoint asked for it with a response header',
  failing: 'all attempts failed for long',
};

const AUTH_NAMES: Record<Schemas['AuthMethod']['method'], string> = {
  hmac: 'HMAC signature',
  api_key: 'API key in a header',
  basic: 'User name and password',
  oauth2: 'OAuth 2.0 client credentials',
};
