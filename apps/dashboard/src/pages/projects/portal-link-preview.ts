import type { Capability } from '../../api/session.ts';
import { isDarkEnough } from '../../theme/contrast.ts';
import type { LinkDraft } from './portal-link-rules.ts';

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

const ALL = ['view', 'manage', 'secrets', 'resend', 'controlDeliveries'] as const;
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

function lifetimeText(minutes: number): string {
  const unit = UNITS.find((each) => minutes % each.minutes === 0) ?? UNITS[2];
  const count = minutes / unit.minutes;
  return `${count} ${unit.name}${count === 1 ? '' : 's'}`;
}
