import { describe, expect, it } from '@jest/globals';
import { BadRequestError, ValidationError } from '@posthorn/client';
import { explainRefusal, receiverUrlOf, targetOf } from './listen.ts';

it.each([
  ['3000', 'http://localhost:3000/'],
  ['3000/webhooks?a=1', 'http://localhost:3000/webhooks?a=1'],
  ['127.0.0.1:3000/hook', 'http://127.0.0.1:3000/hook'],
  ['https://staging.example.com/hook', 'https://staging.example.com/hook'],
])('reads the target %s', (text, url) => {
  expect(targetOf(text, true)?.href).toBe(url);
});

it('refuses what is no target, and a password in it', () => {
  expect(() => targetOf('99999', true)).toThrow('neither a port nor a URL');
  expect(() => targetOf(undefined, true)).toThrow('Name a port');
  expect(() => targetOf('http://a:secret@localhost', true)).toThrow('--header');
  expect(targetOf(undefined, false)).toBeNull();
});

describe('The address of the webhook', () => {
  it('is that of this machine for a gateway on it', () => {
    for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
      expect(receiverUrlOf(`http://${host}:8080`, {})).toBeNull();
    }
  });

  it('must be given for a gateway elsewhere, with the port of the tunnel', () => {
    const baseUrl = 'https://posthorn.example.com';
    expect(() => receiverUrlOf(baseUrl, {})).toThrow('Start a tunnel');
    const receiverUrl = 'https://tunnel.example.com/';
    expect(() => receiverUrlOf(baseUrl, { receiverUrl })).toThrow('--receiver-port');
    expect(receiverUrlOf(baseUrl, { receiverUrl, receiverPort: 4242 })).toBe(receiverUrl);
  });
});

it('says how Posthorn delivers to its own machine when it refuses the address', () => {
  const failure = { status: 400, code: 'invalid_request', message: 'Invalid', requestId: null };
  const of = (path: string) => new ValidationError({ ...failure, errors: [{ path, message: '' }] });
  expect(String(explainRefusal(of('url')))).toContain('EGRESS_ALLOW_LOOPBACK=true');
  const others = [of('eventTypes'), new BadRequestError(failure), new Error('no network')];
  for (const error of others) expect(explainRefusal(error)).toBe(error);
});
