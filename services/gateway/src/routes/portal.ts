import { CAPABILITIES } from '@posthorn/domain/access.ts';
import { z } from 'zod';
import {
  createPortalLink,
  endPortalLink,
  type ListedPortalLink,
  listPortalLinks,
} from '../keys/portal-links.ts';
import { foundOr404 } from '../api-error.ts';
import type { Gateway } from '../gateway.ts';
import { route, type Route } from '../http/route.ts';
import {
  idField,
  idText,
  isoTime,
  limit,
  name,
  optionalFields,
  skip,
  text,
  timeField,
  wholeNumber,
} from './fields.ts';
import { createdLinkFields, creationOfLink } from './created-link.ts';

/** From 1 to 65535. */
const PORT = '([1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5])';
const HOST = `([a-z0-9-]{1,63}\\.){0,6}[a-z][a-z0-9-]{0,62}(:${PORT})?`;
const LOOPBACK = `(localhost|127\\.0\\.0\\.1)(:${PORT})?`;
const ORIGIN = new RegExp(`^(https://${HOST}|https?://${LOOPBACK})$`);

/** Goes into a header of the portal: nothing but an origin may pass. */
const originText = text(1, 300)
  .regex(ORIGIN, 'must be an origin such as https://app.example.com')
  .meta({ example: 'https://app.example.com' });

/** Goes between the portal and the token of its link. */
export const pathText = z
  .string('must be text')
  .regex(
    /^(\/[\w-]+)+(\?[\w=&%.:-]*)?$/,
    'must be a path such as /webhooks/wh_1, with a query or without',
  )
  .max(500, 'must have at most 500 characters');

const IMAGE = 'data:image/(png|jpeg|webp|svg\\+xml);base64,[A-Za-z0-9+/]+={0,2}';
// Only `MAX_LOGO_CHARS` bounds its length: the engines of many clients refuse patterns with more than 1,000 repeats.
const IMAGE_URL = `https://${HOST}(/[\\w.~%-]+)*(\\?[\\w.~%=&-]*)?`;
const LOGO = new RegExp(`^(${IMAGE}|${IMAGE_URL})$`);
const MAX_LOGO_CHARS = 65_536;

export const themeSchema = z
  .strictObject({
    name: name.optional().meta({ description: 'Stands above every page', example: 'Acme' }),
    logoUrl: text(1, MAX_LOGO_CHARS)
      .regex(LOGO, 'must be an image as a data: URL, or an https URL')
      .optional()
      .meta({
        description:
          'An image as a `data:` URL, or the https URL of one at an origin of the portal settings: browsers load it from nowhere else',
        example: 'https://app.example.com/logo.svg',
      }),
    primaryColor: z
      .string('must be text')
      .regex(/^#[0-9a-fA-F]{6}$/, 'must be a colour such as #1c7ed6')
      .optional()
      .meta({ example: '#1c7ed6' }),
    colorScheme: z
      .enum(['light', 'dark', 'auto'], 'must be light, dark or auto')
      .optional()
      .meta({ description: '`auto` (default) is as the browser of the visitor prefers it' }),
  })
  .meta({ id: 'PortalTheme' });

const tag = 'Portal';
const versionedOnly = true;

const CAPABILITY = `must be one of ${CAPABILITIES.join(', ')}`;

const linkBody = z
  .object({
    expiresInSeconds: wholeNumber(60, 604_800).meta({
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
    ...optionalFields({
      theme: themeSchema,
      path: pathText.meta({
        description: 'A page of the portal to begin with',
        example: '/webhooks',
      }),
    }),
  })
  .meta({ id: 'CreatePortalLink' });

const linkSchema = z
  .object(
    createdLinkFields('plnk', {
      opens: 'Opens the portal once. Whoever has it gets in',
      example: 'https://hooks.example.com/dashboard/portal/comp_01kdyx3m9e7r8s5tqv2wzcbn4a#Y2hv',
    }),
  )
  .meta({ id: 'PortalLink' });

const listedSchema = z
  .object({
    id: idField('plnk'),
    appId: idField('app'),
    apiKeyId: idField('key').nullable().meta({
      description:
        'The API key with which the link ends; null when it was revoked, or the app was deleted',
    }),
    status: z.enum(['unopened', 'opened', 'ended']).meta({
      description: '`ended`: its API key was revoked or has expired, or its app was deleted',
    }),
    capabilities: z.array(z.enum(CAPABILITIES)),
    createdAt: timeField,
    openedAt: timeField.nullable().meta({ description: 'Null until somebody opened it' }),
    expiresAt: timeField,
  })
  .meta({ id: 'ListedPortalLink' });

const listQuery = z.object({
  appId: idText('app').optional().meta({ description: 'Only the links to the portal of this app' }),
  limit: limit(100, 100),
  skip,
});

/** See docs/contract.md C20. */
export function portalRoutes(gateway: Gateway): Route[] {
  return [
    createLink(gateway),
    listLinks(gateway),
    revokeLink(gateway),
    readSettings(gateway),
    writeSettings(gateway),
  ];
}

function createLink(gateway: Gateway): Route {
  return route({
    operationId: 'createPortalLink',
    method: 'post',
    path: '/apps/:appId/portal-links',
    versionedOnly,
    scope: 'webhooks:write',
    audit: { action: 'portal_link.created', target: 'portalLink' },
    tag,
    summary: 'Make a link to the portal of an app',
    description:
      'The link signs one visitor in to pages that show this app only. It opens once, and the visit ends when the link expires or is revoked, or when the API key that made it is revoked or expires. A link made in a session of the dashboard that a sign-in link began lasts as long as asked. A link cannot give what the API key may not do.',
    body: linkBody,
    response: { status: 201, message: 'Portal link created', data: linkSchema },
    errors: ['not_found', 'quota_exceeded'],
    creation: creationOfLink('plnk', (companyId, id) => gateway.links.expiryOf(companyId, id)),
    async handle({ caller, params: { appId = '' }, body: { value }, newId, baseUrl }) {
      const { expiresInSeconds, capabilities, theme = {}, path = '' } = value;
      const linkId = newId('plnk');
      const asked = { linkId, appId, expiresInSeconds, capabilities, theme, path, baseUrl };
      const {
        id,
        url,
        expiresAtMs,
        capabilities: given,
      } = await createPortalLink(gateway, caller, asked);
      const expiresAt = isoTime(expiresAtMs);
      const changed = { before: {}, after: { appId, capabilities: given, expiresAt } };
      return { data: { id, url, expiresAt }, changed };
    },
  });
}

function listLinks(gateway: Gateway): Route {
  return route({
    operationId: 'listPortalLinks',
    method: 'get',
    path: '/portal-links',
    versionedOnly,
    scope: 'read',
    tag,
    summary: 'List the links to portals, those that last longest first',
    description:
      'Links that were revoked or have expired are left out. The URL of a link is shown only when it is made.',
    query: listQuery,
    response: { status: 200, message: 'Portal links found', data: z.array(listedSchema) },
    errors: ['not_found'],
    async handle({ caller, query }) {
      const { companyId } = caller;
      const appId = query.appId ?? caller.appId;
      const page = await listPortalLinks(gateway, { ...query, companyId, appId });
      return { data: page.map(describeLink) };
    },
  });
}

function describeLink(link: ListedPortalLink): z.infer<typeof listedSchema> {
  const { id, appId, apiKeyId, status, capabilities, createdAtMs, openedAtMs, expiresAtMs } = link;
  return {
    id,
    appId,
    apiKeyId,
    status,
    capabilities,
    createdAt: isoTime(createdAtMs),
    openedAt: openedAtMs === null ? null : isoTime(openedAtMs),
    expiresAt: isoTime(expiresAtMs),
  };
}

function revokeLink(gateway: Gateway): Route {
  return route({
    operationId: 'revokePortalLink',
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
    async handle({ caller: { companyId, appId: onlyOf }, params: { linkId = '' } }) {
      const ended = await endPortalLink(gateway, { companyId, linkId, appId: onlyOf });
      const { appId, capabilities } = foundOr404(ended, 'portal link');
      return { changed: { before: { appId, capabilities }, after: {} } };
    },
  });
}

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
const settingsBody = z
  .object({ origins: settingsFields.origins.exactOptional() })
  .meta({ id: 'UpdatePortalSettings' });

function readSettings({ portalSettings }: Gateway): Route {
  return route({
    operationId: 'getPortalSettings',
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

function writeSettings({ portalSettings }: Gateway): Route {
  return route({
    operationId: 'updatePortalSettings',
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
    isBodyOptional: true,
    response: { status: 200, message: 'Portal settings updated', data: settingsSchema },
    async handle({ caller: { companyId }, body: { value } }) {
      const before = await portalSettings.read(companyId);
      const after = { ...before, ...value };
      if (value.origins !== undefined) await portalSettings.write(companyId, after);
      return { data: after, changed: { before: { ...before }, after } };
    },
  });
}
