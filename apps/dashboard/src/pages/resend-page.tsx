import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schemas } from '../api/client.ts';
import { resendQuery } from '../api/resends.ts';
import { Facts } from '../parts/figures.tsx';
import { Page, Section } from '../parts/page.tsx';
import { QueryView } from '../parts/states.tsx';
import { Copyable, When } from '../parts/values.tsx';
import {
  AbortResend,
  ResendCounts,
  ResendOwner,
  ResendStatus,
  useOwners,
} from './resend-progress.tsx';

const route = getRouteApi('/resends/$resendId');

/** One resend, found again by its address after a reload. */
export function ResendPage() {
  const { resendId } = route.useParams();
  const query = useQuery(resendQuery(resendId));
  return (
    <Page
      title="Resend"
      under={<Copyable text={resendId} name="resend id" />}
      actions={query.data !== undefined && <AbortResend resend={query.data} />}
    >
      <QueryView query={query} what="the resend">
        {(resend) => <Progress resend={resend} />}
      </QueryView>
    </Page>
  );
}

function Progress({ resend }: { resend: Schemas['Resend'] }) {
  const { appId, webhookId, createdAt, updatedAt, abortAskedAt } = resend;
  const owners = useOwners([resend]);
  const owner = { ...(appId !== null && { appId }), ...(webhookId !== null && { webhookId }) };
  return (
    <>
      <Facts
        facts={[
          ['Status', <ResendStatus key="status" resend={resend} />],
          ['Of', <ResendOwner key="owner" resend={resend} {...owners} />],
          ['Started', <When key="started" at={createdAt} />],
          ['Last progress', <When key="progress" at={updatedAt} />],
          ...(abortAskedAt === null
            ? []
            : [['Abort asked', <When key="abort" at={abortAskedAt} />] as const]),
        ]}
      />
      <Section title="Deliveries">
        <ResendCounts resend={resend} />
      </Section>
      <Link to="/resends" search={owner}>
        Other resends of it
      </Link>
    </>
  );
}
