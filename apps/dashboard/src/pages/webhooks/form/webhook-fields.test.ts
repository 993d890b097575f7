import { describe, expect, it } from '@jest/globals';
import { changedFields, type WebhookFields } from './webhook-fields.ts';

const stored: WebhookFields = {
  url: 'https://shop.example/hook',
  name: 'Shop',
  eventTypes: ['order.paid', 'order.sent'],
  rateLimitPerSecond: 5,
  timeoutSeconds: 10,
  customHeaders: [
    { key: 'X-Auth', value: '********' },
    { key: 'X-Note', value: ' a: b ' },
  ],
  disabled: false,
};

const SHOWN = {
  url: stored.url,
  name: 'Shop',
  eventTypes: 'order.paid\norder.sent',
  rateLimitPerSecond: '5',
  timeoutSeconds: '10',
  customHeaders: 'X-Auth: ********\nX-Note:  a: b ',
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
    expect(changedFields(formWith({ timeoutSeconds: '3' }), stored)).toEqual({ timeoutSeconds: 3 });
    expect(changedFields(formWith({ customHeaders: 'X-Auth: ********' }), stored)).toEqual({
      customHeaders: [{ key: 'X-Auth', value: '********' }],
    });
    const form = formWith({});
    form.delete('isEnabled');
    expect(changedFields(form, stored)).toEqual({ disabled: true });
  });
});
