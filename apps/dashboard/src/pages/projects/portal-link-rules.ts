import type { components } from '@posthorn/client';
import { PORTAL_LINK_RULES } from '@posthorn/client/rules';
import { isDarkEnough } from '../../theme/contrast.ts';

type LinkBody = components['schemas']['CreatePortalLink'];
type Capability = LinkBody['capabilities'][number];

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

type LinkProblems = Partial<Record<keyof LinkDraft, string>>;

const { expiresInSeconds: LIFETIME, path: PATH, theme } = PORTAL_LINK_RULES;
const THEME = theme.parts;
const ALL = PORTAL_LINK_RULES.capabilities.entry.choices;

export const MINUTES = { min: LIFETIME.min / 60, max: LIFETIME.max / 60 };

interface TextRule {
  pattern: string;
  maxChars?: number;
}

const fits = (text: string, { pattern, maxChars }: TextRule): boolean =>
  new RegExp(pattern).test(text) && text.length <= (maxChars ?? text.length);

/** Returns what the gateway would refuse, before it is asked. */
export function problemsOf(draft: LinkDraft): LinkProblems {
  const { minutes, path, name, logoUrl, primaryColor } = draft;
  const { min, max } = MINUTES;
  const isWhole = /^\d{1,5}$/.test(minutes);
  return {
    ...(!(isWhole && Number(minutes) >= min && Number(minutes) <= max) && {
      minutes: `Give whole minutes, from ${min} to ${max} (${lifetimeText(max)})`,
    }),
    ...(path !== '' &&
      !fits(path, PATH) && {
        path: 'Give a path such as /webhooks/wh_1, with a query or without',
      }),
    ...(Array.from(name).length > THEME.name.maxChars && {
      name: `At most ${THEME.name.maxChars} characters`,
    }),
    ...(logoUrl !== '' &&
      !fits(logoUrl, THEME.logoUrl) && {
        logoUrl: 'Give the https URL of an image, or choose a file of at most 48 kB',
      }),
    ...(primaryColor !== '' &&
      !fits(primaryColor, THEME.primaryColor) && { primaryColor: 'Give a colour such as #1c7ed6' }),
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

const MAY: Record<Capability, string> = {
  view: 'sees its webhooks, messages and attempts',
  manage: 'creates, changes, tests and deletes webhooks',
  secrets: 'sees the secrets of webhooks',
  resend: 'sends failed deliveries again',
  controlDeliveries: 'controls deliveries',
};

const MAY_NOT: Record<Capability, string> = {
  view: 'see anything',
  manage: 'change webhooks',
  secrets: 'see secrets',
  resend: 'send anything again',
  controlDeliveries: 'control deliveries',
};

const SCHEMES = { light: 'Always light.', dark: 'Always dark.', auto: '' } as const;

/** Returns in words what a link will do, so that whoever makes it can read it before. */
export function previewOf(draft: LinkDraft, appName: string): string {
  const { capabilities, minutes, path, name, primaryColor, colorScheme } = draft;
  const has = (each: Capability): boolean => each === 'view' || capabilities.includes(each);
  const may = ALL.filter(has).map((each) => MAY[each]);
  const mayNot = ALL.filter((each) => !has(each)).map((each) => MAY_NOT[each]);
  const sentences = [
    `Whoever opens it first, within ${lifetimeText(Number(minutes))}, gets the portal of ${appName} and ${listText(may, 'and')}.`,
    mayNot.length > 0 && `They cannot ${listText(mayNot, 'or')}.`,
    `The visit begins at ${path === '' ? 'the list of webhooks' : path}, and ends at the same time as the link.`,
    `“${name === '' ? appName : name}” stands above every page.`,
    SCHEMES[colorScheme],
    primaryColor !== '' &&
      !isDarkEnough(primaryColor) &&
      'White text on this colour could not be read, so the portal keeps its own colour.',
  ];
  return sentences.filter(Boolean).join(' ');
}

function listText(parts: readonly string[], word: string): string {
  if (parts.length < 2) return parts.join('');
  return `${parts.slice(0, -1).join(', ')} ${word} ${parts.at(-1) ?? ''}`;
}

const UNITS = [
  { minutes: 1_440, name: 'day' },
  { minutes: 60, name: 'hour' },
  { minutes: 1, name: 'minute' },
] as const;

export function lifetimeText(minutes: number): string {
  const unit = UNITS.find((each) => minutes % each.minutes === 0) ?? UNITS[2];
  const count = minutes / unit.minutes;
  return `${count} ${unit.name}${count === 1 ? '' : 's'}`;
}
