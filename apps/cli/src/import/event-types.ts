import { ApiError, type ImportedEventTypes } from '@posthorn/client';
import { EVENT_TYPE_RULES } from '@posthorn/client/rules';
import type { Finding, MappedEventType, Note, Unmapped } from './mapping.ts';

/*
 * Event types of another service. They come over as an OpenAPI document, a part of the catalogue at a time: the API compares it
 * with what is there.
 */

/** What a service knows of an event type. */
export interface PeerEventType {
  name: string;
  source: string;
  description: string;
  group: string | undefined;
  schema: object | undefined;
  example: object | undefined;
  isDeprecated: boolean;
  isArchived: boolean;
}

const NAME = new RegExp(EVENT_TYPE_RULES.name.pattern);
const { maxChars: MAX_DESCRIPTION } = EVENT_TYPE_RULES.description;
const { maxChars: MAX_GROUP } = EVENT_TYPE_RULES.group;

/** Returns the event type with what fits, and `findings` for the rest. */
export function mapEventType(
  { name, source, isDeprecated, isArchived, schema, example, ...texts }: PeerEventType,
  findings: Finding[],
  note: Note,
): MappedEventType | Unmapped {
  if (!NAME.test(name)) {
    note('leftOut', 'event types whose name is none here', name);
    return { kind: 'Unmapped', object: source, findings };
  }
  const description = cut(texts.description, MAX_DESCRIPTION, 'descriptions', note);
  const group = cut(texts.group ?? '', MAX_GROUP, 'groups', note);
  const content = { ...(schema && { schema }), ...(example && { example }) };
  const post = {
    description,
    ...(group !== '' && { tags: [group] }),
    deprecated: isDeprecated,
    ...(isArchived && { 'x-archived': true }),
    requestBody: { content: { 'application/json': content } },
  };
  return { kind: 'EventType', name, source, webhook: { post }, findings };
}

function cut(text: string, maxChars: number, what: string, note: Note): string {
  const chars = Array.from(text);
  if (chars.length <= maxChars) return text;
  note('changed', `${what} of event types longer than ${maxChars} characters are cut`);
  return chars.slice(0, maxChars).join('');
}

/** Imports the webhooks of a document, or says what that would change. */
export type ImportWebhooks = (
  webhooks: Readonly<Record<string, object>>,
) => PromiseLike<ImportedEventTypes>;

interface Outcome {
  imported: ImportedEventTypes | null;
  failed: { type: MappedEventType; finding: Finding }[];
}

/** Half of what the API takes. */
const MAX_BYTES = 524_288;

/** Returns lists of event types that one request can have. */
export function partsOf(types: readonly MappedEventType[]): MappedEventType[][] {
  const parts: MappedEventType[][] = [];
  let bytes = 0;
  for (const type of types) {
    const own = Buffer.byteLength(JSON.stringify(type.webhook));
    bytes += own;
    const last = parts.at(-1);
    if (last && bytes <= MAX_BYTES) last.push(type);
    else {
      parts.push([type]);
      bytes = own;
    }
  }
  return parts;
}

/**
 * Imports event types. The API takes all or none, so those that it refuses are reported, and the others are sent again.
 * Throws what is not about one of them.
 */
export async function importPart(
  types: readonly MappedEventType[],
  importWebhooks: ImportWebhooks,
): Promise<Outcome> {
  const failed: Outcome['failed'] = [];
  let left = [...types];
  while (left.length > 0) {
    try {
      const webhooks = left.map(({ name, webhook }) => [name, webhook] as const);
      return { imported: await importWebhooks(Object.fromEntries(webhooks)), failed };
    } catch (error) {
      const refused = refusedOf(left, error);
      if (refused.length === 0) throw error;
      failed.push(...refused);
      left = left.filter((each) => !refused.some(({ type }) => type === each));
    }
  }
  return { imported: null, failed };
}

function refusedOf(types: readonly MappedEventType[], error: unknown): Outcome['failed'] {
  const problems = error instanceof ApiError ? (error.errors ?? []) : [];
  return types.flatMap((type) => {
    const place = `document.webhooks.${type.name}.post.`;
    const own = problems.filter(({ path }) => path.startsWith(place));
    if (own.length === 0) return [];
    const detail = own.map(({ path, message }) => `${path.slice(place.length)} ${message}`);
    const about = 'refused by Posthorn';
    return [{ type, finding: { kind: 'failed', about, detail: detail.join('; ') } as const }];
  });
}
