import type { NotStored } from '@posthorn/domain/message/not-stored.ts';
import type {
  FoundWebhook,
  TargetList,
  TargetQuery,
  WebhookStore,
} from '@posthorn/platform/mongo/webhooks/webhooks.ts';

/** What one look-up has found of a webhook, an app, or an app and an event type. */
export type LoadedTargets =
  | { kind: 'webhooks'; webhooks: FoundWebhook[]; notStored: NotStored }
  /** The app has too many to be held: they are looked up by event type, under this number. */
  | { kind: 'wide'; number: number; notStored: NotStored }
  | { kind: 'targets'; list: TargetList };

/** Each resolves to null when there is no such app or webhook. */
export interface LoadTargets {
  ofWebhook: (companyId: string, webhookId: string) => Promise<LoadedTargets | null>;
  ofApp: (companyId: string, appId: string) => Promise<LoadedTargets | null>;
  ofWideApp: (
    companyId: string,
    query: Omit<TargetQuery, 'limit'>,
  ) => Promise<LoadedTargets | null>;
}

export interface LoadTargetsDeps {
  /** How many webhooks one message may go to: QUOTA_TARGETS_PER_MESSAGE. */
  maxTargets: number;
  webhooks: Pick<WebhookStore, 'findTarget' | 'appOf' | 'findByApp' | 'findTargets'>;
  /** Null when the company has no such app. */
  notStoredByApp: (companyId: string, appId: string) => Promise<NotStored | null>;
}

/**
 * An app with more is wide. One look-up of a narrow app serves every event type, and holds at most 2 MB:
 * 8 KiB of custom headers and 13 kB of event types for each webhook.
 */
const MOST_IN_NARROW_APP = 100;

export function createLoadTargets(deps: LoadTargetsDeps): LoadTargets {
  const { maxTargets, webhooks, notStoredByApp } = deps;
  let wideApps = 0;
  return {
    async ofWebhook(companyId, webhookId) {
      const found = await webhooks.findTarget(companyId, webhookId);
      if (!found) return null;
      const notStored = await notStoredByWebhook(deps, companyId, found);
      return { kind: 'webhooks', webhooks: [found], notStored };
    },
    async ofApp(companyId, appId) {
      // The app is checked itself: the webhooks of a deleted app are removed after the response.
      const [notStored, found] = await Promise.all([
        notStoredByApp(companyId, appId),
        webhooks.findByApp(companyId, appId, MOST_IN_NARROW_APP + 1),
      ]);
      if (!notStored) return null;
      if (found.length <= MOST_IN_NARROW_APP) {
        return { kind: 'webhooks', webhooks: found, notStored };
      }
      wideApps += 1;
      return { kind: 'wide', number: wideApps, notStored };
    },
    async ofWideApp(companyId, { appId, eventType }) {
      // One more than a message may have, to see that there are too many.
      const query = { appId, eventType, limit: maxTargets + 1 };
      return { kind: 'targets', list: await webhooks.findTargets(companyId, query) };
    },
  };
}

/** A message to one webhook is stored as its app wants. A global webhook has none. */
async function notStoredByWebhook(
  { webhooks, notStoredByApp }: LoadTargetsDeps,
  companyId: string,
  found: FoundWebhook,
): Promise<NotStored> {
  const appId = found.kind === 'opened' ? found.appId : await webhooks.appOf(companyId, found.id);
  if (appId === null) return {};
  return (await notStoredByApp(companyId, appId)) ?? {};
}
