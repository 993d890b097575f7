import { z } from 'zod';
import type { CountApps } from '../../history/overview/count-apps.ts';
import { route, type Route } from '../../http/request/route.ts';
import { idField } from '../../http/responses/fields.ts';
import { idList, idsIn } from './fields.ts';

export interface AppCountsDeps {
  countApps: CountApps;
}

const MAX_APPS = 20;

const appCountsSchema = z
  .object({
    appId: idField('app'),
    webhooks: z.int().meta({ description: 'Counted up to 10,000' }),
    succeeded: z.int().meta({ description: 'Attempts of the last 24 hours that succeeded' }),
    failed: z.int().meta({ description: 'Attempts of the last 24 hours that failed' }),
  })
  .meta({ id: 'AppCounts' });

/** See docs/contract.md C21.9. */
export function appCountsRoute({ countApps }: AppCountsDeps): Route {
  return route({
    method: 'get',
    path: '/app-counts',
    versionedOnly: true,
    scope: 'read',
    tag: 'Overview',
    summary: 'Count the webhooks of apps and their attempts of the last 24 hours',
    description: 'In no order. Ids that do not exist are left out.',
    query: z.object({ ids: idList(MAX_APPS) }),
    response: { status: 200, message: 'Apps counted', data: z.array(appCountsSchema) },
    async handle({ caller: { companyId, appId: onlyOf }, query: { ids } }) {
      const shown = idsIn(ids).filter((id) => onlyOf === null || id === onlyOf);
      return { data: await countApps(companyId, shown) };
    },
  });
}
