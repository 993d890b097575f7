import { expect, test } from '@jest/globals';
import { webhookWords } from './words.ts';

test('a webhook is called by its name, with its address below', () => {
  const webhook = { name: 'Warehouse', url: 'https://shop.example/hooks' };
  expect(webhookWords(webhook)).toEqual({ name: 'Warehouse', address: 'shop.example/hooks' });
});

test('the beginning of its host is a name of its own', () => {
  const webhook = { name: 'shop', url: 'https://shop.example/hooks' };
  expect(webhookWords(webhook)).toEqual({ name: 'shop', address: 'shop.example/hooks' });
});

test('a webhook without a name of its own, which is its host, is called by its address', () => {
  const webhook = { name: 'shop.example:8443', url: 'https://shop.example:8443/hooks' };
  expect(webhookWords(webhook)).toEqual({ name: 'shop.example:8443/hooks', address: null });
});
