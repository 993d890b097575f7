import { randomInt } from 'node:crypto';
import { DAY_MS } from '@posthorn/domain/ids/days.ts';
import { timeMsOf } from '@posthorn/domain/ids/ids.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import { RARE_EVENT_TYPE, type HistoryOwner } from './fill-days.ts';

/** What a read asks for → returns the path of one such request. */
export type Reads = Record<string, () => string>;

const anyOf = (ids: readonly string[]): string => requiredAt(ids, randomInt(ids.length), 'id');

/** The requests that the pages of the dashboard make, each for anything that is in the store. */
export function readsOfPages({ appId, webhookIds }: HistoryOwner, messageIds: string[]): Reads {
  const webhook = (): string => anyOf(webhookIds);
  const message = (): string => anyOf(messageIds);
  const timeOf = (id: string, plusMs = 0): string => new Date(timeMsOf(id) + plusMs).toISOString();
  const list = (filter: string): string => `/webhook-messages?limit=50${filter}`;
  return {
    'overview of an hour': () => '/overview?range=1h',
    'overview of a day': () => '/overview?range=24h',
    'overview of 7 days': () => '/overview?range=7d',
    'overview of 30 days': () => '/overview?range=30d',
    'newest messages': () => list(''),
    'messages of an app': () => list(`&appId=${appId}`),
    'messages of a webhook': () => list(`&webhookId=${webhook()}`),
    'messages before any time': () => list(`&to=${timeOf(message())}`),
    'messages of any hour': () => {
      const id = message();
      return list(`&from=${timeOf(id, -DAY_MS / 24)}&to=${timeOf(id)}`);
    },
    'exhausted messages': () => list('&status=exhausted'),
    'exhausted messages of a webhook': () => list(`&status=exhausted&webhookId=${webhook()}`),
    'delivered messages of a webhook': () => list(`&status=delivered&webhookId=${webhook()}`),
    'exhausted deliveries to a webhook': () =>
      list(`&deliveryStatus=exhausted&webhookId=${webhook()}`),
    'delivered deliveries to a webhook': () =>
      list(`&deliveryStatus=delivered&webhookId=${webhook()}`),
    'pending messages, of which there are none': () => list('&status=pending'),
    'messages of a rare event type': () => list(`&eventType=${RARE_EVENT_TYPE}`),
    'messages of an app that has none': () => list('&appId=app_01m87v64vk0000000000000000'),
    'a message': () => `/webhook-messages/${message()}`,
    'deliveries of a message': () => `/webhook-messages/${message()}/deliveries`,
    'anything by its id': () => `/find?id=${message()}`,
    'newest webhooks': () => '/find-webhooks',
    'webhooks by part of their URL': () => '/find-webhooks?text=bench',
    'the URLs of a list': () => `/find-webhooks?ids=${webhookIds.slice(0, 50).join(',')}`,
    'a webhook': () => `/webhooks/${webhook()}?secrets=false`,
    ...readsOfWebhooks(webhook),
    ...readsOfCompany(appId),
  };
}

const ago = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString();

function readsOfWebhooks(webhook: () => string): Reads {
  return {
    'health of a webhook': () => `/webhooks/${webhook()}/health`,
    'hours of a webhook': () => `/stats?step=hour&webhookId=${webhook()}`,
    'what a resend of 7 days would send': () =>
      `/webhooks/${webhook()}/resend-failed/estimate?since=${ago(7)}`,
  };
}

function readsOfCompany(appId: string): Reads {
  return {
    'failures of a day': () => `/failures?since=${ago(1)}`,
    'failures of 30 days': () => `/failures?since=${ago(30)}`,
    circuits: () => '/circuits',
    resends: () => '/resends',
    'audit log': () => '/audit-events',
    'API keys': () => '/api-keys',
    'portal links of an app': () => `/portal-links?appId=${appId}`,
    'counts of an app': () => `/app-counts?ids=${appId}`,
    'apps by name': () => '/find-apps?text=bench',
  };
}
