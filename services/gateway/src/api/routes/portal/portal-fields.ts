import { z } from 'zod';
import { name, text } from '../fields.ts';

/** From 1 to 65535. */
const PORT = '([1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5])';
const HOST = `([a-z0-9-]{1,63}\\.){0,6}[a-z][a-z0-9-]{0,62}(:${PORT})?`;
const LOOPBACK = `(localhost|127\\.0\\.0\\.1)(:${PORT})?`;
const ORIGIN = new RegExp(`^(https://${HOST}|https?://${LOOPBACK})$`);

/** Goes into a header of the portal: nothing but an origin may pass. */
export const originText = text(1, 300)
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
