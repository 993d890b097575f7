import { CAPABILITIES } from '@posthorn/domain/access/capabilities.ts';
import { z } from 'zod';
import type { CreatePortalLink } from '../../dashboard/portal/create-portal-link.ts';
import type { RevokePortalLink } from '../../dashboard/portal/revoke-portal-link.ts';
import type { PortalSettingsStore } from '../../dashboard/portal/portal-settings.ts';
import { idField, isoTime, timeField } from '../../../http/responses/fields.ts';
import { route, type Route } from '../../../http/request/route.ts';
import { text } from '../fields.ts';
import { originText, pathText, themeSchema } from './portal-fields.ts';

export interface PortalDeps {
  createPortalLink: CreatePortalLink;
  revokePortalLink: RevokePortalLink;
  portalSettings: Pick<PortalSettingsStore, 'read' | 'write'>;
}

const tag = 'Portal';
const versionedOnly = true;

const SECONDS = 'must be a whole number from 60 to 604800';
const CAPABILITY = `must be one of ${CAPABILITIES.join(', ')}`;

const linkBody = z
  .object({
    expiresInSeconds: z.int(SECONDS).min(60, SECONDS).max(604_800, SECONDS).meta({
      description: 'How long the link, and the visit that it begins, may last',
      example: 3_600,
    }),
    capabilities: z
      .array(z.enum(CAPABILITIES, CAPABILITY), 'must be a list of capabilities')
      .max(CAPABILITIES.length, `must have at most ${CAPABILITIES.length} capabilities`)
      .meta({
        description:
          'What the visitor may do in the app. `view` is always included; `manage` changes webhooks, `secrets` shows their secrets, `resend` sends failed deliveries again',
        example: ['view', 'resend'],
      }),
    theme: themeSchema.optional(),
    path: pathText.optional().meta({
      description: 'A page of the portal to begin with',
      example: '/webhooks',
    }),
  })
  .meta({ id: 'CreatePortalLink' });

const linkSchema = z
  .object({
    id: idField('plnk'),
    url: text(1, 2_048).meta({
      description: 'Opens the portal once. Whoever has it gets in: give it to one person',
      example: 'https://hooks.example.com/dashboard/portal/comp_01kdyx3m9e7r8s5tqv2wzcbn4a#Y2hv',
    }),
    expiresAt: timeField,
  })
  .meta({ id: 'PortalLink' });

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

/** See docs/contract.md C20. */
export function portalRoutes(deps: PortalDeps): Route[] {
  return [createLink(deps), revokeLink(deps), readSettings(deps), writeSettings(deps)];
}

function createLink({ createPortalLink }: PortalDeps): Route {
  return route({
    method: 'post',
    path: '/apps/:appId/portal-links',
    versionedOnly,
    scope: 'webhooks:write',
    audit: { action: 'portal_link.created', target: 'portalLink' },
    tag,
    summary: 'Make a link to the portal of an app',
    description:
      'The link signs one visitor in to pages that show this app only. It opens once, and the visit ends when the link expires, or when it, or the API key that made it, is revoked. A link cannot give what the API key may not do.',
    body: linkBody,
    response: { status: 201, message: 'Portal link created', data: linkSchema },
    errors: ['not_found'],
    async handle({ caller, params: { appId = '' }, body: { value }, baseUrl }) {
      const { expiresInSeconds, capabilities, theme = {}, path = '' } = value;
      const asked = { appId, expiresInSeconds, capabilities, theme, path, baseUrl };
      const { id, url, expiresAtMs, capabilities: given } = await createPortalLink(caller, asked);
      const expiresAt = isoTime(expiresAtMs);
      const changed = { before: {}, after: { appId, capabilities: given, expiresAt } };
      return { data: { id, url, expiresAt }, changed };
    },
  });
}

function revokeLink({ revokePortalLink }: PortalDeps): Route {
  return route({
    method: 'delete',
    path: '/portal-links/:linkId',
    versionedOnly,
    scope: 'webhooks:write',
    audit: { action: 'portal_link.revoked', target: 'portalLink' },
    tag,
    summary: 'Revoke a link to the portal',
    description:
      'The link does not open any more, and its visit ends at once at this gateway, and within two seconds at others.',
    response: { status: 200, message: 'Portal link revoked' },
    errors: ['not_found'],
    async handle({ caller, params: { linkId = '' } }) {
      const { appId, capabilities } = await revokePortalLink(caller, linkId);
      return { changed: { before: { appId, capabilities }, after: {} } };
    },
  });
}

function readSettings({ portalSettings }: PortalDeps): Route {
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

function writeSettings({ portalSettings }: PortalDeps): Route {
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
