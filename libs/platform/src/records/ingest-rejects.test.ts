import { describe, expect, test } from '@jest/globals';
import type { CopiedRecord, StoredParts } from '../kafka/record-log.ts';
import { copyOf, cutCopyOf, publishRejects, readReject, type Reject } from './ingest-rejects.ts';

const place = { clusterId: 'c', topic: 'orders', partition: 1, offset: 2, timestampMs: 3 };
const stored: StoredParts = {
  key: Buffer.from([0xff, 0x00]),
  value: Buffer.from('no JSON'),
  headers: { binary: Buffer.from([0xfe]), twice: [Buffer.from('a'), Buffer.from('b')] },
};
const reject: Reject = { place, code: 'invalid_json', message: 'not valid JSON', stored };

/** As a consumer of kafkajs reads it. */
function asRead({ key, value, headers = {} }: CopiedRecord) {
  const texts = Object.entries(headers).map(([name, text]) => [name, String(text)]);
  return {
    partition: 0,
    offset: 7,
    atMs: 9,
    headers: Object.fromEntries(texts) as Record<string, string>,
    stored: { key, value, headers },
  };
}

function logOf(refusesBytes = Infinity) {
  const sent: CopiedRecord[][] = [];
  const publishCopies = (records: readonly CopiedRecord[]): Promise<void> => {
    if (records.some(({ value }) => (value?.length ?? 0) > refusesBytes)) {
      return Promise.reject(Object.assign(new Error('too large'), { type: 'MESSAGE_TOO_LARGE' }));
    }
    sent.push([...records]);
    return Promise.resolve();
  };
  return { sent, publishCopies };
}

describe('a rejected record', () => {
  test('has the same bytes and headers, and its reason besides', () => {
    const read = readReject(asRead(copyOf('rejected', reject)));
    expect(read).toEqual({
      partition: 0,
      offset: 7,
      atMs: 9,
      code: 'invalid_json',
      message: 'not valid JSON',
      place,
      record: stored,
      cutFromBytes: null,
    });
  });

  test('that is rejected once more has the last reason only', () => {
    const again = { ...reject, code: 'not_found' as const, stored: copyOf('rejected', reject) };
    const read = readReject(asRead(copyOf('rejected', again)));
    expect(read).toMatchObject({ code: 'not_found', record: stored });
  });

  test('without a value has none here either', () => {
    const empty = { ...reject, stored: { key: null, value: null, headers: {} } };
    expect(copyOf('rejected', empty)).toMatchObject({ key: null, value: null });
  });

  test('that the topic does not take whole is cut, and says so', async () => {
    const value = Buffer.alloc(1_500_000, 'x');
    const log = logOf(1_000_000);
    await publishRejects(log, 'rejected', [reject, { ...reject, stored: { ...stored, value } }]);
    const reads = log.sent.flat().map((each) => readReject(asRead(each)));
    expect(reads.map(({ cutFromBytes }) => cutFromBytes)).toEqual([null, 1_500_000]);
    expect(reads[1]?.record.value).toHaveLength(65_536);
  });

  test('has no more of its reason than a cut record has room for', () => {
    const long = { ...reject, message: 'x'.repeat(2_000_000) };
    expect(readReject(asRead(cutCopyOf('rejected', long))).message).toBe('x'.repeat(1_000));
  });

  test('is not published for any other failure', async () => {
    const publishCopies = (): Promise<void> => Promise.reject(new Error('Kafka is away'));
    await expect(publishRejects({ publishCopies }, 'rejected', [reject])).rejects.toThrow('away');
  });

  test('of another program has no code and no place', () => {
    const foreign = asRead({ topic: 'rejected', key: null, value: null, headers: {} });
    expect(readReject(foreign)).toMatchObject({ code: '', message: '', place: null });
  });

  test('that is cut keeps the beginning of its key', () => {
    const long = { ...stored, key: Buffer.alloc(1_000) };
    expect(cutCopyOf('rejected', { ...reject, stored: long }).key).toHaveLength(256);
  });
});
