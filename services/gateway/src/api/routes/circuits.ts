import { z } from 'zod';
import type { CircuitOfWebhook, ReadCircuits } from '../../history/overview/read-circuits.ts';
import { route, type Route } from '../../http/request/route.ts';
import { idField, isoTime, timeField } from '../../http/responses/fields.ts';
import { idText } from './fields.ts';
import { findOwner, type OwnerDeps } from './stats-owner.ts';

export interface CircuitDeps extends OwnerDeps {
  readCircuits: ReadCircuits;
  nowMs: () => number;
}

const listQuery = z.object({
  appId: idText('app').optional().meta({ description: 'Only the webhooks of this app' }),
});

const circuitSchema = z
  .object({
    webhookId: idField('wh'),
    url: z.string(),
    appId: idField('app').nullable().meta({ description: 'Null for a global webhook' }),
    circuit: z.enum(['open', 'half_open']).meta({
      description: '`half_open`: the next attempt decides whether it closes',
    }),
    since: timeField.meta({ description: 'When it opened, without a success since' }),
    probeAt: timeField.meta({ description: 'When the next attempt may be made' }),
  })
  .meta({ id: 'OpenCircuit' });

const MOST = 1_000;

/** See docs/contract.md C21.6. */
export function circuitRoutes(deps: CircuitDeps): Route[] {
  return [
    route({
      method: 'get',
      path: '/circuits',
      versionedOnly: true,
      scope: 'read',
      portal: 'view',
      tag: 'Overview',
      summary: 'List the open circuits, the oldest first',
      description:
        'While the circuit of a webhook is open, its endpoint gets one attempt now and then, and the others are deferred. Returns at most 1,000. While Redis is away they are not known: 503.',
      query: listQuery,
      response: { status: 200, message: 'Circuits found', data: z.array(circuitSchema) },
      errors: ['not_found'],
      async handle({ caller, query }) {
        await findOwner(deps, caller, query);
        const appId = query.appId ?? caller.appId ?? undefined;
        const found = await deps.readCircuits(caller.companyId, { appId });
        const nowMs = deps.nowMs();
        return { data: found.slice(0, MOST).map((each) => describeCircuit(each, nowMs)) };
      },
    }),
  ];
}

function describeCircuit(
  { webhook, probeAtMs, sinceMs }: CircuitOfWebhook,
  nowMs: number,
): z.infer<typeof circuitSchema> {
  const { id: webhookId, url, appId } = webhook;
  return {
    webhookId,
    url,
    appId,
    circuit: probeAtMs > nowMs ? 'open' : 'half_open',
    since: isoTime(sinceMs),
    probeAt: isoTime(probeAtMs),
  };
}
