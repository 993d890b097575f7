import { z } from 'zod';
import { idField } from '../../http/responses/fields.ts';
import { route, type Route } from '../../http/request/route.ts';
import type { FindApps } from '../../projects/find-apps.ts';
import { cursor, limit, text } from './fields.ts';

export interface FindAppsDeps {
  findApps: FindApps;
}

const findQuery = z.object({
  text: text(1, 128).optional().meta({
    description: 'Part of the name, in any case, or the whole id',
    example: 'orders',
  }),
  limit: limit(100, 20),
  cursor: cursor('app').optional(),
});

const foundAppSchema = z
  .object({
    id: idField('app'),
    name: z.string(),
    environment: z.enum(['development', 'production']),
    projectId: idField('proj'),
    projectName: z.string(),
  })
  .meta({ id: 'FoundApp' });

/** See docs/contract.md C21.7. */
export function findAppsRoute({ findApps }: FindAppsDeps): Route {
  return route({
    method: 'get',
    path: '/find-apps',
    versionedOnly: true,
    scope: 'read',
    tag: 'Overview',
    summary: 'Find apps of any project by name, oldest first',
    description:
      'One request looks at 1,000 apps. A page may therefore hold fewer entries than `limit`, or none, although `nextCursor` is not null.',
    query: findQuery,
    response: {
      status: 200,
      message: 'Apps found',
      hasCursor: true,
      data: z.array(foundAppSchema),
    },
    async handle({ caller: { companyId, appId }, query }) {
      const { cursor: afterId, ...search } = query;
      const onlyId = appId ?? undefined;
      const { apps, nextCursor } = await findApps(companyId, { ...search, onlyId, afterId });
      return { data: apps, nextCursor };
    },
  });
}
