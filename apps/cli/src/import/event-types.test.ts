import { describe, expect, it } from '@jest/globals';
import { ApiError, type ImportedEventTypes } from '@posthorn/client';
import { importPart, partsOf } from './event-types.ts';
import type { MappedEventType } from './mapping.ts';
import { mapSvixEventType } from './svix.ts';

describe('an event type of Svix', () => {
  it('keeps description, group, its newest schema and the example in it', () => {
    const mapped = mapSvixEventType({
      name: 'order.paid',
      description: 'An order was paid.',
      groupName: 'Orders',
      deprecated: true,
      schemas: {
        2: { type: 'object' },
        10: { $schema: 'http://json-schema.org/draft-07/schema#', examples: [{ a: 1 }] },
      },
    });
    const content = { schema: { examples: [{ a: 1 }] }, example: { a: 1 } };
    expect(mapped).toMatchObject({
      kind: 'EventType',
      name: 'order.paid',
      findings: [],
      webhook: {
        post: {
          description: 'An order was paid.',
          tags: ['Orders'],
          deprecated: true,
          requestBody: { content: { 'application/json': content } },
        },
      },
    });
  });

  it('comes over without a schema, and cut where it is longer', () => {
    const type = { name: 'a', description: 'x'.repeat(5_000), groupName: 'g'.repeat(101) };
    const mapped = mapSvixEventType({ ...type, featureFlags: [{}] }) as MappedEventType;
    expect(mapped.findings.map(({ kind }) => kind)).toEqual(['leftOut', 'changed', 'changed']);
    expect(JSON.stringify(mapped.webhook)).not.toContain('schema');
  });

  it.each([true, false])('that is archived (%j) stays so', (archived) => {
    const { webhook } = mapSvixEventType({ name: 'a', archived }) as MappedEventType;
    expect(webhook).toMatchObject({ post: archived ? { 'x-archived': true } : {} });
    expect(JSON.stringify(webhook).includes('x-archived')).toBe(archived);
  });

  it.each(['größe', '', 'x'.repeat(129)])('with the name %j is reported', (name) => {
    expect(mapSvixEventType({ name })).toMatchObject({ kind: 'Unmapped', findings: [{}] });
  });
});

const typeOf = (name: string, text = ''): MappedEventType => ({
  kind: 'EventType',
  name,
  source: name,
  webhook: { post: { description: text } },
  findings: [],
});

describe('event types', () => {
  it('are sent in parts that the API takes', () => {
    const types = ['a', 'b', 'c', 'd'].map((name) => typeOf(name, 'x'.repeat(200_000)));
    expect(partsOf(types).map((part) => part.map(({ name }) => name))).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
  });

  it('that the API refuses are reported, and the others are sent again', async () => {
    const sent: string[][] = [];
    const imported: ImportedEventTypes = {
      created: 2,
      updated: 0,
      archived: 0,
      unchanged: 0,
      changes: [],
    };
    const importWebhooks = (webhooks: object) => {
      const names = Object.keys(webhooks);
      sent.push(names);
      if (!names.includes('order')) return Promise.resolve(imported);
      const path = 'document.webhooks.order.post.tags.0';
      const errors = [{ path, message: 'must be text' }];
      const failure = { status: 400, code: 'invalid_request', message: 'Wrong', requestId: null };
      return Promise.reject(new ApiError({ ...failure, errors }));
    };
    const types = ['order', 'order.post', 'paid'].map((name) => typeOf(name));
    const outcome = await importPart(types, importWebhooks);
    expect(sent).toEqual([
      ['order', 'order.post', 'paid'],
      ['order.post', 'paid'],
    ]);
    expect(outcome.imported).toBe(imported);
    expect(outcome.failed).toMatchObject([
      { type: { name: 'order' }, finding: { kind: 'failed', detail: 'tags.0 must be text' } },
    ]);
  });

  it('are not sent again after a failure that names none', async () => {
    const failure = Promise.reject(new TypeError('no network'));
    await expect(importPart([typeOf('a')], () => failure)).rejects.toThrow('no network');
  });
});
