import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useKeyName } from '../api/api-keys.ts';
import { useByIds } from '../api/find.ts';
import { personQuery } from '../api/people.ts';
import { appsOfQuery, type FoundApp } from '../api/projects.ts';
import { webhooksOfQuery } from '../api/webhooks.ts';
import { webhookWords } from '../api/words.ts';
import { Copyable, Cut } from '../parts/values.tsx';
import { useRights, useSession } from '../session/session-context.ts';

interface WebhookLinkProps {
  webhookId: string;
  /** Undefined while it is not known, and once it was deleted: then there is only the id. */
  webhook: { name: string; url: string } | undefined;
}

/** What a webhook is called, with its host and path below. */
export function WebhookLink({ webhookId, webhook }: WebhookLinkProps) {
  const { name, address } = webhook ? webhookWords(webhook) : { name: webhookId, address: null };
  return (
    <>
      <Link to="/webhooks/$webhookId" params={{ webhookId }}>
        <Cut text={name} />
      </Link>
      {address !== null && <Cut text={address} look="small" />}
    </>
  );
}

interface UrlLinkProps {
  webhookId: string;
  url: string;
  tab?: 'attempts';
}

/** The URL of a webhook, where its name is not known. */
export function UrlLink({ webhookId, url, tab }: UrlLinkProps) {
  return (
    <Link to="/webhooks/$webhookId" params={{ webhookId }} search={tab ? { tab } : {}}>
      <Cut text={url} lines={2} />
    </Link>
  );
}

interface AppLinkProps {
  appId: string;
  /** Undefined while it is not known, and once it was deleted. */
  app: { name: string } | undefined;
}

/** What an app is called. Visitors of the portal see one app, and no page of it. */
export function AppLink({ appId, app }: AppLinkProps) {
  const { portal } = useSession();
  if (portal !== null) return portal.app.name;
  return (
    <Link to="/apps/$appId" params={{ appId }}>
      <Cut text={app?.name ?? appId} />
    </Link>
  );
}

/** The apps of these ids, by id. Visitors of the portal may not ask for any. */
export function useApps(appIds: readonly (string | null)[]): ReadonlyMap<string, FoundApp> {
  const { kind } = useSession();
  const ids = appIds.filter((id) => id !== null);
  return useByIds(kind === 'company' ? ids : [], appsOfQuery);
}

/** The webhooks of these ids, by id. */
export function useWebhooks(webhookIds: readonly (string | null)[]) {
  return useByIds(
    webhookIds.filter((id) => id !== null),
    webhooksOfQuery,
  );
}

/** Who did something, from the id of a person, an API key or a portal link. */
export function WhoseId({ id }: { id: string }) {
  const { kind } = useSession();
  if (kind === 'company' && id.startsWith('usr_')) return <PersonId id={id} />;
  return kind === 'company' && id.startsWith('key_') ? <KeyId id={id} /> : <Copyable text={id} />;
}

/** Everybody sees their own name, and admins that of every person who was not removed. */
function PersonId({ id }: { id: string }) {
  const { person } = useSession();
  const { canManagePeople } = useRights();
  const query = { ...personQuery(id), enabled: canManagePeople && person?.id !== id, retry: false };
  const { data } = useQuery(query);
  const name = (person?.id === id ? person : data)?.name ?? null;
  return (
    <>
      {name !== null && <Cut text={name} />}
      <Copyable text={id} name="person id" />
    </>
  );
}

function KeyId({ id }: { id: string }) {
  const name = useKeyName(id);
  return (
    <>
      {name !== undefined && <Cut text={name} />}
      <Copyable text={id} name="key id" />
    </>
  );
}
