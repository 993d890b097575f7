import { describe, expect, test } from '@jest/globals';
import { CAPABILITIES, SCOPES } from '@posthorn/domain/access.ts';
import { unattemptedDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { routeTable } from '../../../../test/support/api/route-table.ts';
import { countingIds, sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { ApiError, notFound } from '../api-error.ts';
import type { Route } from '../http/route.ts';
import { assertAllowed, type Caller, confineToApp, type NamedIds } from './rights.ts';

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
      'controlDeliveries post /deliveries/cancel',
      'controlDeliveries post /webhooks/:webhookId/cancel-pending',
      'controlDeliveries post /webhooks/:webhookId/hold',
      'controlDeliveries post /webhooks/:webhookId/ordering-keys/skip',
      'controlDeliveries post /webhooks/:webhookId/replay-missing',
      'controlDeliveries post /webhooks/:webhookId/resume',
      'manage delete /webhooks/:webhookId',
      'manage post /test-filter',
      'manage post /webhooks',
      'manage post /webhooks/:webhookId/rotate-secret',
      'manage post /webhooks/:webhookId/test',
      'manage put /webhooks/:webhookId',
      'resend or controlDeliveries post /resends/:resendId/abort',
      'resend post /apps/:appId/resend-failed',
      'resend post /deliveries/:deliveryId/resend',
      'resend post /deliveries/resend',
      'resend post /webhooks/:webhookId/resend-failed',
      'view get /apps/:appId',
      'view get /apps/:appId/event-types',
      'view get /apps/:appId/event-types/:eventTypeName',
      'view get /apps/:appId/resend-failed/estimate',
      'view get /cancellations',
      'view get /cancellations/:cancellationId',
      'view get /circuits',
      'view get /deliveries',
      'view get /deliveries/:deliveryId',
      'view get /deliveries/cancel/estimate',
      'view get /deliveries/resend/estimate',
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
      'view get /webhooks/:webhookId/ordering-keys',
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

describe('a key for one app', () => {
  const newId = countingIds();
  const apps = ['own', 'other'] as const;
  const idsOf = (app: (typeof apps)[number]) => ({
    projectId: `proj_${app}`,
    appId: `app_${app}`,
    webhookId: `wh_${app}`,
    keyId: `key_${app}`,
    toApp: newId('msg'),
    toWebhook: newId('msg'),
    ofApp: `rsd_app_${app}`,
    ofWebhook: `rsd_wh_${app}`,
  });
  const known = { own: idsOf('own'), other: idsOf('other') };
  const messages = apps.flatMap((app) => {
    const { appId, webhookId, toApp, toWebhook } = known[app];
    const targets = [webhookId];
    return [
      sampleMessage(toApp, { appId, targets }),
      sampleMessage(toWebhook, { appId: null, targets }),
    ];
  });
  const deliveries = messages.map((each) => ({
    ...unattemptedDelivery(each, each.targets[0] ?? '', 1),
    waiting: null,
    waitingSinceMs: null,
  }));
  const resends = apps.flatMap((app) => [
    { id: known[app].ofApp, appId: known[app].appId, webhookId: null },
    { id: known[app].ofWebhook, appId: null, webhookId: known[app].webhookId },
  ]);
  const appNamedBy = (id: string): string | null => {
    const app = apps.find((each) => Object.values(known[each]).includes(id));
    return app ? `app_${app}` : null;
  };
  const deps = {
    apps: {
      get: (_company: string, id: string) =>
        id.startsWith('app_')
          ? Promise.resolve({ projectId: id.replace('app', 'proj') })
          : Promise.reject(notFound('app')),
    },
    webhooks: {
      appOf: (_company: string, id: string) => Promise.resolve(appNamedBy(id)),
      findOne: () => Promise.resolve(null),
      cancelBeforeOf: () => Promise.resolve(new Map()),
    },
    messages: {
      outlinesOf: (_company: string, ids: readonly string[]) =>
        Promise.resolve(messages.filter(({ id }) => ids.includes(id))),
      findOne: () => Promise.resolve(null),
      outlinesAt: () => ({ [Symbol.asyncIterator]: () => [].values() }),
    },
    deliveries: {
      findMany: (_company: string, ids: readonly string[]) =>
        Promise.resolve(deliveries.filter(({ id }) => ids.includes(id))),
    },
    resends: {
      findShown: (_company: string, id: string) =>
        Promise.resolve(resends.find((each) => each.id === id) ?? null),
    },
    apiKeys: { appOf: (_company: string, id: string) => Promise.resolve(appNamedBy(id)) },
  } as unknown as Parameters<typeof confineToApp>[0];

  async function refusalOfNamed(ids: NamedIds): Promise<number | null> {
    const owner = { companyId: 'comp_a', appId: 'app_own' };
    try {
      await confineToApp(deps, owner, ids, () => Promise.resolve());
      return null;
    } catch (error) {
      if (error instanceof ApiError) return error.status;
      throw error;
    }
  }

  const named = (app: (typeof apps)[number]): NamedIds[] => {
    const { projectId, appId, webhookId, keyId, toApp, toWebhook, ofApp, ofWebhook } = known[app];
    return [
      { projectId },
      { appId },
      { webhookId },
      { keyId },
      { messageId: toApp },
      { messageId: toWebhook },
      { deliveryId: deliveryIdOf(toApp, webhookId) },
      { deliveryId: deliveryIdOf(toWebhook, webhookId) },
      { resendId: ofApp },
      { resendId: ofWebhook },
    ];
  };

  test.each(named('own'))('may be used for %o of its app', async (ids) => {
    expect(await refusalOfNamed(ids)).toBeNull();
  });

  test.each(named('other'))('does not find %o of another app of its company', async (ids) => {
    expect(await refusalOfNamed(ids)).toBe(404);
  });

  test.each<NamedIds>([
    { webhookId: 'wh_none' },
    { keyId: 'key_none' },
    { messageId: newId('msg') },
    { deliveryId: deliveryIdOf(newId('msg'), 'wh_own') },
    { resendId: 'rsd_none' },
  ])('does not find %o, which is nothing', async (ids) => {
    expect(await refusalOfNamed(ids)).toBe(404);
  });

  test('does not find what names one app and a webhook of another', async () => {
    const ids = { appId: known.own.appId, webhookId: known.other.webhookId };
    expect(await refusalOfNamed(ids)).toBe(404);
  });
});
