import { describe, expect, test } from '@jest/globals';
import {
  type IngestPlace,
  type IngestSource,
  placeKeyOf,
  readPlaceKey,
} from '@posthorn/domain/ingest.ts';
import type { StoredParts } from '@posthorn/platform/kafka/record-log.ts';
import fc from 'fast-check';
import { ApiError } from '../api-error.ts';
import { readRecord } from './read-record.ts';

const SOURCE: IngestSource = { topic: 'orders', companyId: 'comp_1', appId: 'app_default' };
const AT: IngestPlace = {
  clusterId: 'c1',
  topic: 'orders',
  partition: 3,
  offset: 42,
  timestampMs: 1_700_000_000_000,
};
const PLACE = 'kafka/c1/orders/3/42/1700000000000';

type Headers = NonNullable<StoredParts['headers']>;

function read(value: string | Buffer | null, headers: Headers = {}, source: IngestSource = SOURCE) {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return readRecord({ key: null, value: bytes, headers }, source, AT);
}

function refusalOf(value: string | Buffer | null, headers: Headers = {}, source = SOURCE): string {
  try {
    read(value, headers, source);
  } catch (error) {
    if (error instanceof ApiError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return 'accepted';
}

const NO_APP: IngestSource = { topic: 'orders', companyId: 'comp_1' };

describe('the message of a record', () => {
  test('has the value as its payload, byte for byte', () => {
    const value = ' {"b":1e400, "a":12345678901234567890, "a":"é"}\n';
    expect(read(value).payload).toBe(value);
  });

  test('goes to the app of the source unless a header names another app or a webhook', () => {
    expect(read('{}')).toMatchObject({ appId: 'app_default', webhookId: undefined });
    const app = { 'posthorn-app-id': Buffer.from('uid:shop-1') };
    expect(read('{}', app)).toMatchObject({ appId: 'uid:shop-1', webhookId: undefined });
    const webhook = { 'posthorn-webhook-id': Buffer.from('wh_1') };
    expect(read('{}', webhook)).toMatchObject({ appId: undefined, webhookId: 'wh_1' });
  });

  test('has the event type of its own header, else of the header of the source, else of the CloudEvent', () => {
    const source = { ...SOURCE, eventTypeHeader: 'kind' };
    const all = { 'posthorn-event-type': 'one', kind: 'two', ce_type: 'three' };
    expect(read('{}', all, source).eventType).toBe('one');
    const { kind, ce_type } = all;
    expect(read('{}', { kind, ce_type }, source).eventType).toBe('two');
    expect(read('{}', { ce_type }, source).eventType).toBe('three');
    expect(read('{}', {}, source).eventType).toBeNull();
  });

  test('has the tags of a list with commas', () => {
    const tagsOf = (list: string) => read('{}', { 'posthorn-tags': list }).given.tags;
    expect(tagsOf(' order-17, shop ,')).toEqual(['order-17', 'shop']);
    expect(tagsOf('')).toBeUndefined();
  });

  test('has the external id of its header, which belongs to what it says', () => {
    const own = { 'posthorn-external-id': 'evt-17' };
    expect(read('{}', own).given).toEqual({ externalId: 'evt-17' });
    const key = { 'posthorn-idempotency-key': 'k' };
    expect(read('{}', { ...key, ...own }).bodyHash).not.toBe(read('{}', key).bodyHash);
  });

  test('has the end that its headers give it, which belongs to what it says', () => {
    const ends = {
      'posthorn-expires-at': '2026-01-31T09:30:00+01:00',
      'posthorn-retention-days': '7',
    };
    const expiresAtMs = Date.UTC(2026, 0, 31, 8, 30);
    expect(read('{}', ends).given).toEqual({ expiresAtMs, retentionDays: 7 });
    expect(read('{}').given).toEqual({});
    const key = { 'posthorn-idempotency-key': 'k' };
    expect(read('{}', { ...key, ...ends }).bodyHash).not.toBe(read('{}', key).bodyHash);
  });

  test('keeps a trace context that is well formed', () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    expect(read('{}', { traceparent }).traceparent).toBe(traceparent);
    for (const broken of ['not one', [traceparent, traceparent], Buffer.from([0xff])]) {
      expect(read('{}', { traceparent: broken }).traceparent).toBeUndefined();
    }
  });

  test('has the ordering key of its header, else of the CloudEvent, else its key where the source wants that', () => {
    const bySource: IngestSource = { ...SOURCE, orderingKeyFromRecordKey: true };
    const keyOf = (headers: Headers, source = bySource) =>
      readRecord({ key: Buffer.from('order-17'), value: Buffer.from('{}'), headers }, source, AT)
        .given.orderingKey;
    const event = { ce_partitionkey: 'of the event' };
    expect(keyOf({ ...event, 'posthorn-ordering-key': 'own' })).toBe('own');
    expect(keyOf(event)).toBe('of the event');
    expect(keyOf({})).toBe('order-17');
    expect(keyOf({}, SOURCE)).toBeUndefined();
    expect(read('{}', {}, bySource).given).toEqual({});
  });

  test('is the same one with an ordering key that no header of Posthorn gives it', () => {
    const key = { 'posthorn-idempotency-key': 'k' };
    const hashOf = (headers: Headers) => read('{}', { ...key, ...headers }).bodyHash;
    expect(hashOf({ ce_partitionkey: 'a' })).toBe(hashOf({}));
    expect(hashOf({ 'posthorn-ordering-key': 'a' })).not.toBe(hashOf({}));
  });

  test('ignores every other header, also one of another byte encoding', () => {
    expect(refusalOf('{}', { other: Buffer.from([0xff]), ce_other: 'k' })).toBe('accepted');
  });
});

describe('the reason of a refusal', () => {
  test('quotes the beginning of a long name of a header', () => {
    const name = `posthorn-${'x'.repeat(1_000_000)}`;
    expect(refusalOf('{}', { [name]: 'y' }).length).toBeLessThan(300);
  });
});

describe('the idempotency key of a record', () => {
  test('is that of its header, else of the CloudEvent, else its place', () => {
    const event = { ce_source: '/shop', ce_id: 'e1' };
    const all = { ...event, 'posthorn-idempotency-key': 'mine' };
    expect(read('{}', all).key).toBe('mine');
    expect(read('{}', event).key).toMatch(/^cloudevents\/[0-9a-f]{64}$/);
    expect(read('{}', { ce_id: 'e1' }).key).toBe(PLACE);
    expect(read('{}')).toMatchObject({ key: PLACE, place: PLACE });
  });

  test('of two CloudEvents is the same only for the same source and id', () => {
    const keyOf = (ce_source: string, ce_id: string) => read('{}', { ce_source, ce_id }).key;
    expect(keyOf('/a', 'b')).toBe(keyOf('/a', 'b'));
    expect(keyOf('/a', 'b/c')).not.toBe(keyOf('/a/b', 'c'));
  });

  test('with other content has another hash', () => {
    const key = { 'posthorn-idempotency-key': 'k' };
    const hashOf = (value: string, headers: Headers = {}) =>
      read(value, { ...key, ...headers }).bodyHash;
    expect(hashOf('{}')).toBe(hashOf('{}', { other: 'x' }));
    expect(hashOf('{}')).not.toBe(hashOf('{ }'));
    expect(hashOf('{}')).not.toBe(hashOf('{}', { 'posthorn-event-type': 'a' }));
    expect(hashOf('{}')).not.toBe(hashOf('{}', { 'posthorn-app-id': 'app_2' }));
  });

  test('that is the place does not depend on the settings of the source', () => {
    const other = { ...SOURCE, appId: 'app_other', eventTypeHeader: 'kind' };
    expect(read('{}', { kind: 'a' }, other).bodyHash).toBe(read('{}', { kind: 'a' }).bodyHash);
  });

  test('is different for any two places, and names its place', () => {
    const place = fc.record({
      clusterId: fc.constantFrom('', 'c1', 'MkU3OEVBNTcwNTJENDM2Qg'),
      topic: fc.stringMatching(/^[A-Za-z0-9._-]{1,9}$/),
      partition: fc.nat(2_000),
      offset: fc.nat(),
      timestampMs: fc.oneof(fc.nat(), fc.constant(-1)),
    });
    fc.assert(
      fc.property(place, (at) => {
        expect(readPlaceKey(placeKeyOf(at))).toEqual(at);
      }),
    );
  });
});

describe('a record is rejected', () => {
  test.each([
    ['without a value', null, 'invalid_json: The value is not acceptable: it is empty.'],
    ['with an empty one', '', 'invalid_json: The value is not acceptable: it is empty.'],
    [
      'of a schema registry',
      Buffer.concat([Buffer.from([0, 0, 1, 0x86, 0xa1]), Buffer.from('{"good":1}')]),
      'invalid_json: The value is not acceptable: it begins with the five bytes of a schema registry (0 and the schema id 100001): write plain JSON.',
    ],
    ['of zeros', Buffer.alloc(5), 'invalid_json: The value is not acceptable: not valid JSON.'],
    ['that is no JSON', 'hello', 'invalid_json: The value is not acceptable: not valid JSON.'],
    ['that is an array', '[]', 'invalid_json: The value is not acceptable: must be a JSON object.'],
    [
      'that is not UTF-8',
      Buffer.from([0x7b, 0xff, 0x7d]),
      'invalid_json: The value is not acceptable: not valid UTF-8.',
    ],
    [
      'with a byte-order mark',
      '\ufeff{}',
      'invalid_json: The value is not acceptable: starts with a byte-order mark.',
    ],
    [
      'that is nested too deep',
      `{"a":${'['.repeat(64)}${']'.repeat(64)}}`,
      'invalid_json: The value is not acceptable: nested deeper than 64 levels.',
    ],
    [
      'that is too large',
      `{"a":"${'x'.repeat(262_144)}"}`,
      'body_too_large: The value is larger than 262144 bytes.',
    ],
  ])('%s', (_what, value, refusal) => {
    expect(refusalOf(value)).toBe(refusal);
  });

  test('that is nested as deep as allowed, and as large, is accepted', () => {
    expect(refusalOf(`{"a":${'['.repeat(63)}${']'.repeat(63)}}`)).toBe('accepted');
    expect(refusalOf(`{"a":"${'x'.repeat(262_144 - 8)}"}`)).toBe('accepted');
  });

  test.each<[string, Headers, string]>([
    ['without an address', {}, 'posthorn-app-id: is required, or posthorn-webhook-id'],
    [
      'with two',
      { 'posthorn-app-id': 'app_1', 'posthorn-webhook-id': 'wh_1' },
      'posthorn-app-id: must not be given together with posthorn-webhook-id',
    ],
    [
      'with an empty one',
      { 'posthorn-app-id': '' },
      'posthorn-app-id: must have 1 to 132 characters',
    ],
    [
      'with an address that has no value',
      { 'posthorn-app-id': null } as unknown as Headers,
      'posthorn-app-id: is required, or posthorn-webhook-id',
    ],
    [
      'with a header twice',
      { 'posthorn-app-id': ['app_1', 'app_2'] },
      'posthorn-app-id: is given more than once',
    ],
    [
      'with bytes that are no text',
      { 'posthorn-app-id': Buffer.from([0xff]) },
      'posthorn-app-id: is not valid UTF-8',
    ],
    [
      'with an event type that is none',
      { 'posthorn-app-id': 'app_1', 'posthorn-event-type': 'a b' },
      'posthorn-event-type: must be 1 to 128 letters, digits or . _ : / -',
    ],
    [
      'with a CloudEvent of such a type',
      { 'posthorn-app-id': 'app_1', ce_type: 'a b' },
      'ce_type: must be 1 to 128 letters, digits or . _ : / -',
    ],
    [
      'with an ordering key that has a control character',
      { 'posthorn-app-id': 'app_1', ce_partitionkey: 'a\tb' },
      'ce_partitionkey: must be text without control characters',
    ],
    [
      'with an ordering key and a time',
      {
        'posthorn-app-id': 'app_1',
        'posthorn-ordering-key': 'a',
        'posthorn-deliver-at': '2026-01-31T09:30:00Z',
      },
      'posthorn-deliver-at: must not be given together with orderingKey',
    ],
    [
      'with six tags',
      { 'posthorn-app-id': 'app_1', 'posthorn-tags': '1,2,3,4,5,6' },
      'posthorn-tags: must have at most 5 entries',
    ],
    [
      'with a time that is none',
      { 'posthorn-app-id': 'app_1', 'posthorn-expires-at': 'tomorrow' },
      'posthorn-expires-at: must be a time such as 2026-01-31T09:30:00.000Z',
    ],
    [
      'with days that are no number',
      { 'posthorn-app-id': 'app_1', 'posthorn-retention-days': '7d' },
      'posthorn-retention-days: must be a whole number from 1 to 3650',
    ],
    [
      'with a key that no request may have',
      { 'posthorn-app-id': 'app_1', 'posthorn-idempotency-key': 'é' },
      'posthorn-idempotency-key: must be 1 to 400 printable ASCII characters',
    ],
    [
      'with a header that does not exist',
      { 'posthorn-app-id': 'app_1', 'posthorn-order-key': 'k' },
      'posthorn-order-key: is not a header of an ingested record',
    ],
    [
      'with a header in other letters',
      { 'Posthorn-App-Id': 'app_1' },
      'Posthorn-App-Id: is not a header of an ingested record (and 1 more)',
    ],
  ])('%s', (_what, headers, problem) => {
    expect(refusalOf('{}', headers, NO_APP)).toBe(`invalid_request: ${problem}`);
  });

  test('and may be written again with the headers of its rejection', () => {
    expect(refusalOf('{}', { 'posthorn-reject-code': 'not_found' })).toBe('accepted');
  });

  test('or accepted, whatever it is: nothing else is thrown', () => {
    const bytes = fc.uint8Array({ maxLength: 40 }).map((each) => Buffer.from(each));
    const name = fc.oneof(
      fc.constantFrom('posthorn-app-id', 'posthorn-tags', 'ce_id', 'ce_source', '__proto__'),
      fc.string({ maxLength: 12 }),
    );
    const header = fc.oneof(bytes, fc.string(), fc.array(bytes), fc.constant(undefined));
    const headers = fc.dictionary(name, header, { maxKeys: 6 }) as fc.Arbitrary<Headers>;
    const value = fc.oneof(
      bytes,
      fc.json().map((json) => Buffer.from(json)),
      fc.constant(null),
    );
    fc.assert(
      fc.property(value, headers, (given, others) => {
        expect(typeof refusalOf(given, others)).toBe('string');
      }),
    );
  });
});
