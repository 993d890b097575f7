import { z } from 'zod';
import type { PortalSettingsStore } from '../../dashboard/portal/portal-settings.ts';
import { route, type Route } from '../../../http/request/route.ts';
import { originText } from './portal-fields.ts';

export interface PortalSettingsDeps {
  portalSettings: Pick<PortalSettingsStore, 'read' | 'write'>;
}

const tag = 'Portal';
const versionedOnly = true;

const settingsFields = {
  origins: z
    .array(originText, 'must be a list of origins')
    .max(20, 'must have at most 20 origins')
    .meta({
      description:
        'Of the pages that may show the portal in a frame, and of the images that themes name. None: the portal cannot be framed',
      example: ['https://app.example.com'],
    }),
};
const settingsSchema = z.object(settingsFields).meta({ id: 'PortalSettings' });
const settingsBody = z.object(settingsFields).meta({ id: 'UpdatePortalSettings' });

/** See docs/contract.md C20.5. */
export function portalSettingsRoutes(deps: PortalSettingsDeps): Route[] {
  return [readSettings(deps), writeSettings(deps)];
}

function readSettings({ portalSettings }: PortalSettingsDeps): Route {
  return route({
    method: 'get',
    path: '/portal-settings',
    versionedOnly,
    scope: 'read',
    isForCompanyOnly: true,
    tag,
    summary: 'Get the settings of the portal',
    response: { status: 200, message: 'Portal settings found', data: settingsSchema },
    async handle({ caller: { companyId } }) {
      return { data: await portalSettings.read(companyId) };
    },
  });
}

function writeSettings({ portalSettings }: PortalSettingsDeps): Route {
  return route({
    method: 'put',
    path: '/portal-settings',
    versionedOnly,
    scope: 'webhooks:write',
    isForCompanyOnly: true,
    audit: { action: 'portal_settings.updated', target: 'company' },
    tag,
    summary: 'Change the settings of the portal',
    description: 'Other gateways know the new settings within five seconds.',
    body: settingsBody,
    response: { status: 200, message: 'Portal settings updated', data: settingsSchema },
    async handle({ caller: { companyId }, body: { value } }) {
      const before = await portalSettings.read(companyId);
      await portalSettings.write(companyId, value);
      return { data: value, changed: { before: { ...before }, after: { ...value } } };
    },
  });
}
