import type { InfiniteData } from '@tanstack/react-query';
import type { Schemas } from '../../api/client.ts';

export interface MessageFields {
  /** The app or the webhook that gets it. */
  to: { appId: string } | { webhookId: string | undefined };
  eventType: string | null;
  tags: readonly string[];
  externalId: string | null;
  orderingKey: string | null;
}

/**
 * Returns the body of a request that sends a message. The payload goes as text: parsed and written again, its spaces and
 * its numbers beyond 2^53 would change.
 */
export function messageBody(
  { to, eventType, tags, externalId, orderingKey }: MessageFields,
  payload: string,
): string {
  const head = JSON.stringify({
    ...to,
    ...(eventType !== null && { eventType }),
    ...(tags.length > 0 && { tags }),
    ...(externalId !== null && { externalId }),
    ...(orderingKey !== null && { orderingKey }),
  });
  return `${head.slice(0, -1)},"payload":${payload}}`;
}

/** Indents JSON without reading its values, so that none of them changes. */
export function pretty(json: string): string {
  let depth = 0;
  return json.replaceAll(TOKENS, (token) => {
    if (token === '{' || token === '[') return token + lineAt(++depth);
    if (token === '}' || token === ']') return lineAt(--depth) + token;
    if (token === ',') return token + lineAt(depth);
    if (token === ':') return ': ';
    return /^\s/.test(token) ? '' : token;
  });
}

/** Text, brackets, separators, spaces; empty objects and lists stay together. */
const TOKENS = /"(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[{}[\],:]|\s+/g;

function lineAt(depth: number): string {
  return `\n${'  '.repeat(depth)}`;
}

export interface Page {
  data: Schemas['ListedMessage'][];
}

/** Returns the pages with the present state of one message; every row stays in its place. */
export function withMessage<Pages extends InfiniteData<Page>>(
  data: Pages,
  { id, status, delivered, updatedAt, deliveries }: Schemas['Message'],
): Pages {
  const change = (row: Schemas['ListedMessage']): Schemas['ListedMessage'] =>
    row.id === id ? { ...row, status, delivered, updatedAt, deliveries } : row;
  const pages = data.pages.map((page) =>
    page.data.some((row) => row.id === id) ? { ...page, data: page.data.map(change) } : page,
  );
  return { ...data, pages };
}
