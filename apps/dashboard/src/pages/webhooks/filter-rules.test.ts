import { expect, test } from '@jest/globals';
import { problemOfJson } from '../../parts/form-fields.ts';
import { filterText, jsonOf, testOf } from './filter-rules.ts';

test('a filter is edited as indented JSON, and none as nothing', () => {
  const filter = { payload: { amount: { $gte: 100 } } };
  expect(jsonOf(filterText(filter))).toEqual(filter);
  expect(filterText(filter)).toContain('\n  "payload"');
  expect([filterText(null), jsonOf('')]).toEqual(['', null]);
});

test.each(['{', '[]', 'null', '1', '"a"', 'payload'])('%s is no filter', (text) => {
  expect(problemOfJson(text)).toBe('This is no JSON object');
});

test.each(['', '  ', '{}', ' {"a": 1} '])('%j has no problem', (text) => {
  expect(problemOfJson(text)).toBeNull();
});

test('a text that is no JSON is sent as it is, so that the API refuses it', () => {
  expect(jsonOf('{')).toBe('{');
});

test('a test has the event type and the tags that were typed, and no others', () => {
  const message = { payload: '{"amount":1}', eventType: ' order.paid ', tags: 'eu, ,vip' };
  expect(testOf('{"tags":"eu"}', message)).toEqual({
    filter: { tags: 'eu' },
    payload: { amount: 1 },
    eventType: 'order.paid',
    tags: ['eu', 'vip'],
  });
  expect(testOf('{}', { payload: '', eventType: '', tags: '' })).toEqual({
    filter: {},
    payload: {},
  });
});
