import { expect, test } from '@jest/globals';
import { tlsBody } from './tls-rules.ts';

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
