import type { components } from '@posthorn/client';

type LinkBody = components['schemas']['CreatePortalLink'];

/** What somebody has typed into the form of a link. */
export interface LinkDraft {
  capabilities: LinkBody['capabilities'];
  minutes: string;
  path: string;
  name: string;
  logoUrl: string;
  primaryColor: string;
  colorScheme: 'light' | 'dark' | 'auto';
}

export type LinkProblems = Partial<Record<keyof LinkDraft, string>>;

const PORT = '([1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5])';
const HOST = `([a-z0-9-]{1,63}\\.){0,6}[a-z][a-z0-9-]{0,62}(:${PORT})?`;
const IMAGE = 'data:image/(png|jpeg|webp|svg\\+xml);base64,[A-Za-z0-9+/]+={0,2}';
const IMAGE_URL = `https://${HOST}(/[\\w.~%-]{1,100}){0,15}(\\?[\\w.~%=&-]{0,400})?`;
const LOGO = new RegExp(`^(${IMAGE}|${IMAGE_URL})$`);
const PATH = /^(\/[\w-]+)+(\?[\w=&%.:-]*)?$/;
const COLOR = /^#[0-9a-fA-F]{6}$/;
const MOST = { pathChars: 500, nameChars: 100, logoChars: 65_536, minutes: 10_080 };

/** Returns what the gateway would refuse, before it is asked. */
export function problemsOf(draft: LinkDraft): LinkProblems {
  const { minutes, path, name, logoUrl, primaryColor } = draft;
  const isWhole = /^\d{1,5}$/.test(minutes) && Number(minutes) >= 1;
  return {
    ...(!(isWhole && Number(minutes) <= MOST.minutes) && {
      minutes: 'Give whole minutes, from 1 to 10080 (7 days)',
    }),
    ...(path !== '' &&
      !(PATH.test(path) && path.length <= MOST.pathChars) && {
        path: 'Give a path such as /webhooks/wh_1, with a query or without',
      }),
    ...(Array.from(name).length > MOST.nameChars && { name: 'At most 100 characters' }),
    ...(logoUrl !== '' &&
      !(LOGO.test(logoUrl) && logoUrl.length <= MOST.logoChars) && {
        logoUrl: 'Give the https URL of an image, or choose a file of at most 48 kB',
      }),
    ...(primaryColor !== '' &&
      !COLOR.test(primaryColor) && { primaryColor: 'Give a colour such as #1c7ed6' }),
  };
}

/** Returns the request for a draft without problems. */
export function bodyOf(draft: LinkDraft): LinkBody {
  const { capabilities, minutes, path, name, logoUrl, primaryColor, colorScheme } = draft;
  const theme = {
    ...(name !== '' && { name }),
    ...(logoUrl !== '' && { logoUrl }),
    ...(primaryColor !== '' && { primaryColor }),
    ...(colorScheme !== 'auto' && { colorScheme }),
  };
  return {
    expiresInSeconds: Number(minutes) * 60,
    capabilities,
    ...(path !== '' && { path }),
    ...(Object.keys(theme).length > 0 && { theme }),
  };
}

/** What a part of the form shows and changes. */
export interface LinkFieldsProps {
  draft: LinkDraft;
  problems: LinkProblems;
  change: (changes: Partial<LinkDraft>) => void;
}
