import { expect, test } from '@jest/globals';
import { StoreUnavailableError } from '../../service/errors.ts';
import type { LayoutDocument } from '../documents.ts';
import { followLayout } from './layout.ts';

const BEGIN = new Date(Date.UTC(2026, 10, 24));

test('the followed layout is not known before create-indexes has stored it', async () => {
  let stored: Partial<LayoutDocument> | null = null;
  const documents = { findOne: () => Promise.resolve(stored) };
  const { layout, read, stop } = await followLayout({ collection: () => documents } as never);
  stop();
  expect(layout).toThrow(StoreUnavailableError);
  stored = { retentionDays: 2, beginAt: BEGIN };
  await read();
  expect(layout()).toMatchObject({ beginMs: BEGIN.getTime(), retentionMs: 172_800_000 });
});
