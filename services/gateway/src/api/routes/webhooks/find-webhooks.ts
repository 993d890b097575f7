import { z } from 'zod';
import { idField, isoTime, timeField } from '../../../http/responses/fields.ts';
import { route, type Route } from '../../../http/request/route.ts';
import type { FindWebhooks } from '../../../webhooks/lists/find-webhooks.ts';
import { cursor, idList, idsIn, idText, limit, text } from '../fields.ts';

export interface FindWebhooksDeps {
  findWebhooks: FindWebhooks;
}

const MAX_IDS = 100;

const findQuery = z.object({
  text: text(1, 512).optional().meta({
    description: 'Part of the URL, the name or an event type, in any case, or the whole id',
    example: 'example.com',
  }),
  ids: idList(MAX_IDS).optional(),
  appId: idText('app').optional().meta({ description: 'Only the webhooks of this app' }),
  limit: limit(100, 20),
  cursor: cursor('wh').optional(),
});

const foundWebhookSchema = z
  .object({
    id: idField('wh'),
    url: z.string(),
    name: z.string(),
    eventTypes: z.array(z.string()).meta({ description: 'Empty for all' }),
    disabled: z.boolean(),
    appId: idField('app').nullable().meta({ description: 'Null for a global webhook' }),
    appName: z.string().nullable(),
    createdAt: timeField,
  })
  .meta({ id: 'FoundWebhook' });

/** See docs/contract.md C21.8. */
export function findWebhooksRoute({ findWebhooks }: FindWebhooksDeps): Route {
  return route({
    method: 'get',
    path: '/find-webhooks',
    versionedOnly: true,
    scope: 'read',
    portal: 'view',
    tag: 'Overview',
    summary: 'Find webhooks of any app by URL, name, event type or id, newest first',
    description:
      'One request looks at 1,000 webhooks. A page may therefore hold fewer entries than `limit`, or none, although `nextCursor` is not null. Ids that do not exist are left out.',
    query: findQuery,
    response: {
      status: 200,
      message: 'Webhooks found',
      hasCursor: true,
      data: z.array(foundWebhookSchema),
    },
    async handle({ caller: { companyId, appId: onlyOf }, query, takeTurn }) {
      const { cursor: beforeId, ids, ...search } = query;
      const appId = search.appId ?? onlyOf ?? undefined;
      const wanted = {
        ...search,
        ids: ids === undefined ? undefined : idsIn(ids),
        appId,
        beforeId,
      };
      const found = await findWebhooks(companyId, wanted, takeTurn);
      const data = found.webhooks.map((each) => ({
        ...each,
        createdAt: isoTime(each.createdAt),
      }));
      return { data, nextCursor: found.nextCursor };
    },
  });
}
