import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { webhookQuery } from '../../api/webhooks.ts';
import { outcomeWords } from '../../api/words.ts';
import { useSession } from '../../session/session-context.ts';

/** What a resend is of, with the link to it. */
export function ResendOwner({ resend }: { resend: Schemas['Resend'] }) {
  const { kind: what, appId, webhookId, outcome } = resend;
  const { kind } = useSession();
  if (webhookId !== null) {
    return (
      <>
        <WebhookLink webhookId={webhookId} />
        {what === 'replay' && <>, messages that it has missed</>}
        {outcome !== null && <>, only “{outcomeWords(outcome)}”</>}
      </>
    );
  }
  if (appId === null || kind === 'portal') return 'all webhooks of the app';
  return (
    <>
      all webhooks of{' '}
      <Link to="/apps/$appId" params={{ appId }}>
        {appId}
      </Link>
    </>
  );
}

/** A deleted webhook has no URL any more. */
function WebhookLink({ webhookId }: { webhookId: string }) {
  const { data } = useQuery({ ...webhookQuery(webhookId), retry: false });
  return (
    <Link to="/webhooks/$webhookId" params={{ webhookId }}>
      {data?.url ?? webhookId}
    </Link>
  );
}
