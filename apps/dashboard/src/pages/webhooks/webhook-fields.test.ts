import { describe, expect, it, test } from '@jest/globals';
import { errorIn } from '../../parts/form-fields.ts';
import {
  changedFields,
  hasField,
  readWebhookForm,
  tlsBody,
  type WebhookFields,
} from './webhook-fields.ts';

const SECRET = `whsec_${'A'.repeat(32)}`;

const stored: WebhookFields = {
  uid: 'shop-1',
  metadata: { plan: 'gold' },
  url: 'https://shop.example/hook',
  name: 'Shop',
  eventTypes: ['order.paid', 'order.sent'],
  filter: { payload: { amount: { $gte: 100 } } },
  rateLimitPerSecond: 5,
  timeoutSeconds: 10,
  maxAttempts: 3,
  finalStatusCodes: [400, 422],
  onGone: 'retry',
  obeyControlHeaders: false,
  ordering: 'block',
  customHeaders: [
    { key: 'X-Auth', value: '********' },
    { key: 'X-Note', value: ' a: b ' },
  ],
  signatureHeaders: ['svix', 'webhook'],
  disabled: false,
};

const SHOWN = {
  url: stored.url,
  name: 'Shop',
  eventTypes: 'order.paid\norder.sent',
  filter: '{"payload": {"amount": {"$gte": 100}}}',
  rateLimitPerSecond: '5',
  timeoutSeconds: '10',
  maxAttempts: '3',
  finalStatusCodes: '400, 422',
  ordering: 'block',
  customHeaders: 'X-Auth: ********\nX-Note:  a: b ',
  hasSvixHeaders: 'on',
  uid: 'shop-1',
  metadata: '[{"key":"plan","value":"gold"}]',
  isEnabled: 'on',
};

function formWith(typed: Record<string, string>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries({ ...SHOWN, ...typed })) form.set(name, value);
  return form;
}

describe('what a form changes', () => {
  it('is nothing while nothing was typed, so that no mask is sent in place of a value', () => {
    expect(changedFields(formWith({}), stored)).toEqual({});
  });

  it('is only what was typed', () => {
    expect(changedFields(formWith({ name: 'Other' }), stored)).toEqual({ name: 'Other' });
    expect(changedFields(formWith({ rateLimitPerSecond: '' }), stored)).toEqual({
      rateLimitPerSecond: null,
    });
    expect(changedFields(formWith({ filter: '' }), stored)).toEqual({ filter: null });
    expect(changedFields(formWith({ filter: '{"tags":"eu"}' }), stored)).toEqual({
      filter: { tags: 'eu' },
    });
    expect(changedFields(formWith({ timeoutSeconds: '3' }), stored)).toEqual({ timeoutSeconds: 3 });
    const ending = { maxAttempts: '', finalStatusCodes: ' 410 422,', disablesWhenGone: 'on' };
    expect(changedFields(formWith({ ...ending, obeyControlHeaders: 'on' }), stored)).toEqual({
      maxAttempts: null,
      finalStatusCodes: [410, 422],
      onGone: 'disable',
      obeyControlHeaders: true,
    });
    expect(changedFields(formWith({ ordering: 'skip' }), stored)).toEqual({ ordering: 'skip' });
    expect(changedFields(formWith({ finalStatusCodes: ' ' }), stored)).toEqual({
      finalStatusCodes: null,
    });
    expect(changedFields(formWith({ customHeaders: 'X-Auth: ********' }), stored)).toEqual({
      customHeaders: [{ key: 'X-Auth', value: '********' }],
    });
    expect(changedFields(formWith({ uid: '', metadata: '[]' }), stored)).toEqual({
      uid: null,
      metadata: {},
    });
    const form = formWith({});
    form.delete('isEnabled');
    form.delete('hasSvixHeaders');
    expect(changedFields(form, stored)).toEqual({ disabled: true, signatureHeaders: ['webhook'] });
  });
});

it('creates a webhook with the secret that was typed, and with none while the field is empty', () => {
  expect(readWebhookForm(formWith({ secret: ` ${SECRET} ` }))).toMatchObject({
    secret: SECRET,
    signatureHeaders: ['webhook', 'svix'],
    uid: 'shop-1',
    metadata: { plan: 'gold' },
  });
  expect(readWebhookForm(formWith({ secret: '' }))).not.toHaveProperty('secret');
});

it('says at a field what is wrong with it, entry by entry', () => {
  const problems = [
    { path: 'customHeaders.1.value', message: 'must be given again' },
    { path: 'customHeaders.2.key', message: 'is given twice' },
    { path: 'tls.key', message: 'is encrypted' },
    { path: 'name', message: 'must have 2 to 100 characters' },
  ];
  expect(errorIn(problems, 'customHeaders')).toBe(
    'entry 2 must be given again; entry 3 is given twice',
  );
  expect(errorIn(problems, 'tls.key')).toBe('is encrypted');
  expect(errorIn(problems, 'name')).toBe('must have 2 to 100 characters');
  expect(errorIn(problems, 'url')).toBeUndefined();
});

it('leaves to the box what has no field', () => {
  const has = (path: string): boolean => hasField({ path, message: '' });
  expect(['url', 'tls.ca', 'basicAuthPassword', 'eventTypes.3', 'metadata.plan'].every(has)).toBe(
    true,
  );
  expect(['', 'appId', 'tls', 'names'].some(has)).toBe(false);
});

const PEM = '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----';

test.each<[string, Record<string, string>, object]>([
  ['keeps what is stored while nothing is given', { 'tls.key': ' \n' }, {}],
  ['sends what is given', { 'tls.ca': `${PEM}\n`, 'tls.key': '' }, { tls: { ca: PEM } }],
  ['removes all', { 'tls.ca': PEM, isTlsRemoved: 'on' }, { tls: null }],
])('%s', (_what, typed, body) => {
  const form = new FormData();
  for (const [name, value] of Object.entries(typed)) form.set(name, value);
  expect(tlsBody(form)).toEqual(body);
});
