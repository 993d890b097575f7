import { describe, expect, test } from '@jest/globals';
import type { StoredReject } from '@posthorn/platform/records/ingest-rejects.ts';
import { describeReject } from './ingest-commands.ts';
import { matches } from './ingest-topics.ts';

const PLACE = { clusterId: 'c', topic: 'shop.events', partition: 4, offset: '17', timestampMs: 1 };
const REJECT: StoredReject = {
  partition: 3,
  offset: 42,
  atMs: 5_000,
  code: 'not_found',
  message: 'There is no such app.',
  place: PLACE as unknown as NonNullable<StoredReject['place']>,
  record: {
    key: Buffer.from('customer-17'),
    value: Buffer.from('{"order":17}'),
    headers: { 'posthorn-app-id': Buffer.from('uid:later'), own: [Buffer.from([0, 1]), 'text'] },
  },
  cutFromBytes: null,
};

describe('a rejected record', () => {
  test('is shown with its reason, its key, every header and its value', () => {
    expect(describeReject(REJECT)).toEqual({
      partition: 3,
      offset: 42,
      at: '1970-01-01T00:00:05.000Z',
      code: 'not_found',
      message: 'There is no such app.',
      source: 'shop.events 4:17',
      key: { text: 'customer-17' },
      headers: [
        { name: 'posthorn-app-id', text: 'uid:later' },
        { name: 'own', hex: '0001' },
        { name: 'own', text: 'text' },
      ],
      bytes: 12,
      value: { text: '{"order":17}' },
    });
  });

  test('is shown without what it lacks, and from another program', () => {
    const record = { key: null, value: null, headers: { empty: null as unknown as Buffer } };
    expect(describeReject({ ...REJECT, place: null, record })).toMatchObject({
      source: null,
      key: null,
      headers: [{ name: 'empty' }],
      bytes: null,
      value: null,
    });
  });

  test('shows the beginning of a large value, and how large it is', () => {
    const value = Buffer.alloc(300_000, 'é');
    const shown = describeReject({ ...REJECT, record: { ...REJECT.record, value } });
    expect(shown).toEqual(
      expect.objectContaining({ bytes: 300_000, value: { text: 'é'.repeat(131_072) } }),
    );
  });

  test.each([
    [{}, true],
    [{ code: 'not_found', source: 'shop.events', since: 5_000, until: 5_000 }, true],
    [{ code: 'unreadable' }, false],
    [{ source: 'shop' }, false],
    [{ since: 5_001 }, false],
    [{ until: 4_999 }, false],
  ])('matches the filter %j: %s', (filter, isMeant) => {
    expect(matches(REJECT, filter)).toBe(isMeant);
  });
});
