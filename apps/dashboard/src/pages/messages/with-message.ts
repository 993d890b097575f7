import type { InfiniteData } from '@tanstack/react-query';
import type { Schemas } from '../../api/client.ts';

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
