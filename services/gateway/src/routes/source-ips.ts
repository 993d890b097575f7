import { z } from 'zod';
import type { Gateway } from '../gateway.ts';
import { type ApiResponse, route, type Route } from '../http/route.ts';

const schema = z
  .object({
    ranges: z
      .array(z.string())
      .describe(
        'Address ranges, such as 203.0.113.8/32; empty when the operator has not named them',
      ),
  })
  .meta({ id: 'SourceIps' });

/** An hour: ranges change when the operator moves the service. */
const CACHE_CONTROL = 'public, max-age=3600';

/** See docs/contract.md C9.11. */
export function sourceIpsRoute({ sourceIps }: Gateway): Route {
  const respond = (): ApiResponse => ({ data: { ranges: sourceIps } });
  return route({
    operationId: 'getSourceIps',
    method: 'get',
    path: '/source-ips',
    versionedOnly: true,
    scope: 'read',
    portal: 'view',
    tag: 'Deliveries',
    summary: 'List the addresses that deliveries come from',
    description: 'For the firewall in front of an endpoint. Needs no API key.',
    forEveryone: { cacheControl: CACHE_CONTROL, respond },
    response: { status: 200, message: 'Source addresses found', data: schema },
    handle: () => Promise.resolve(respond()),
  });
}
