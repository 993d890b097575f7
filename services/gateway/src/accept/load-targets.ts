import type {
  FoundWebhook,
  TargetList,
  TargetQuery,
  WebhookStore,
} from '@posthorn/platform/mongo/webhooks/webhooks.ts';

/** What one look-up has found of a webhook, an app, or an app and an event type. */
export type LoadedTargets =
  | { kind: 'webhooks'; webhooks: FoundWebhook[] }
  /** The app has too many to be held: they are looked up by event type, under this number. */
  | { kind: 'wide'; number: number }
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
  webhooks: Pick<WebhookStore, 'findTarget' | 'findByApp' | 'findTargets'>;
  hasApp: (companyId: string, appId: string) => Promise<boolean>;
}

/**
 * An app with more is wide. One look-up of a narrow app serves every event type, and holds at most 2 MB:
 * 8 KiB of custom headers and 13 kB of event types for each webhook.
 */
const MOST_IN_NARROW_APP = 100;

export function createLoadTargets({ maxTargets, webhooks, hasApp }: LoadTargetsDeps): LoadTargets {
  let wideApps = 0;
  return {
    async ofWebhook(companyId, webhookId) {
      const found = await webhooks.findTarget(companyId, webhookId);
      return found && { kind: 'webhooks', webhooks: [found] };
    },
    async ofApp(companyId, appId) {
      // The app is checked itself: the webhooks of a deleted app are removed after the response.
      const [exists, found] = await Promise.all([
        hasApp(companyId, appId),
        webhooks.findByApp(companyId, appId, MOST_IN_NARROW_APP + 1),
      ]);
      if (!exists) return null;
      if (found.length <= MOST_IN_NARROW_APP) return { kind: 'webhooks', webhooks: found };
      wideApps += 1;
      return { kind: 'wide', number: wideApps };
    },
    async ofWideApp(companyId, { appId, eventType }) {
      // One more than a message may have, to see that there are too many.
      const query = { appId, eventType, limit: maxTargets + 1 };
      return { kind: 'targets', list: await webhooks.findTargets(companyId, query) };
    },
  };
}
