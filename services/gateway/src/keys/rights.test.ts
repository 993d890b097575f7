import { describe, expect, test } from '@jest/globals';
import { CAPABILITIES, SCOPES } from '@posthorn/domain/access.ts';
import { routeTable } from '../../../../test/support/api/route-table.ts';
import { ApiError } from '../api-error.ts';
import type { Route } from '../http/route.ts';
import type { Caller } from './rights.ts';
import { assertAllowed } from './rights.ts';

const visitor = (capabilities: readonly (typeof CAPABILITIES)[number][]) => ({
  scopes: SCOPES,
  portal: { linkId: 'plnk_1', capabilities },
});

function refusalOf(route: Route, caller: Pick<Caller, 'scopes' | 'portal'>): number | null {
  try {
    assertAllowed(route, caller);
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error.status;
    throw error;
  }
}

const nameOf = ({ method, path }: Route): string => `${method} ${path}`;
const capabilitiesOf = ({ portal = [] }: Route): readonly string[] => [portal].flat();

describe('a visitor of the portal', () => {
  const routes = routeTable();

  test('finds no routes but these, whatever the key that made the link may do', () => {
    const found = routes.filter((route) => refusalOf(route, visitor(CAPABILITIES)) === null);
    const shown = found.map((route) => `${capabilitiesOf(route).join(' or ')} ${nameOf(route)}`);
    expect(shown.sort()).toEqual([
      'controlDeliveries post /apps/:appId/hold',
      'controlDeliveries post /apps/:appId/resume',
      'controlDeliveries post /deliveries/:deliveryId/cancel',
      'controlDeliveries post /webhooks/:webhookId/cancel-pending',
      'controlDeliveries post /webhooks/:webhookId/hold',
      'controlDeliveries post /webhooks/:webhookId/replay-missing',
      'controlDeliveries post /webhooks/:webhookId/resume',
      'manage delete /webhooks/:webhookId',
      'manage post /webhooks',
      'manage post /webhooks/:webhookId/rotate-secret',
      'manage post /webhooks/:webhookId/test',
      'manage put /webhooks/:webhookId',
      'resend or controlDeliveries post /resends/:resendId/abort',
      'resend post /apps/:appId/resend-failed',
      'resend post /deliveries/:deliveryId/resend',
      'resend post /webhooks/:webhookId/resend-failed',
      'view get /apps/:appId',
      'view get /apps/:appId/resend-failed/estimate',
      'view get /circuits',
      'view get /deliveries',
      'view get /deliveries/:deliveryId',
      'view get /failures',
      'view get /find',
      'view get /find-webhooks',
      'view get /overview',
      'view get /resends',
      'view get /resends/:resendId',
      'view get /source-ips',
      'view get /stats',
      'view get /webhook-messages',
      'view get /webhook-messages/:messageId',
      'view get /webhook-messages/:messageId/deliveries',
      'view get /webhooks',
      'view get /webhooks/:webhookId',
      'view get /webhooks/:webhookId/health',
      'view get /webhooks/:webhookId/replay-missing/estimate',
      'view get /webhooks/:webhookId/resend-failed/estimate',
    ]);
  });

  test.each(CAPABILITIES)('may do what %s stands for, and nothing else', (capability) => {
    for (const route of routes) {
      const isGranted = capabilitiesOf(route).includes(capability);
      const expected = route.portal === undefined ? 404 : isGranted ? null : 403;
      const name = nameOf(route);
      expect([name, refusalOf(route, visitor([capability]))]).toEqual([name, expected]);
    }
  });
});
