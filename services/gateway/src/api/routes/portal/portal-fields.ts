import { z } from 'zod';
import { name, text } from '../fields.ts';

const ORIGIN = /^https?:\/\/[a-z0-9.-]{1,253}(:\d{1,5})?$/;
const LOOPBACK = new Set(['localhost', '127.0.0.1']);

/** Goes into a header of the portal: nothing but an origin may pass. */
export const originText = text(1, 300)
  .refine(isOrigin, 'must be an origin such as https://app.example.com')
  .meta({ example: 'https://app.example.com' });

function isOrigin(given: string): boolean {
  const url = ORIGIN.test(given) ? URL.parse(given) : null;
  if (url?.origin !== given) return false;
  return url.protocol === 'https:' || LOOPBACK.has(url.hostname);
}

/** Goes between the portal and the token of its link. */
export const pathText = z
  .string('must be text')
  .regex(
    /^(\/[\w-]+)+(\?[\w=&%.:-]*)?$/,
    'must be a path such as /webhooks/wh_1, with a query or without',
  )
  .max(500, 'must have at most 500 characters');

const LOGO = /^data:image\/(png|jpeg|webp|svg\+xml);base64,[A-Za-z0-9+/]+={0,2}$/;
const MAX_LOGO_CHARS = 65_536;

export const themeSchema = z
  .strictObject({
    name: name.optional().meta({ description: 'Stands above every page', example: 'Acme' }),
    logoUrl: text(1, MAX_LOGO_CHARS)
      .refine(isLogo, 'must be an image as a data: URL, or an https URL')
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

function isLogo(given: string): boolean {
  if (LOGO.test(given)) return true;
  return given.length <= 2_048 && URL.parse(given)?.protocol === 'https:';
}
