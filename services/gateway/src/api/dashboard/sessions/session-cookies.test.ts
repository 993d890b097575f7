import { describe, expect, test } from '@jest/globals';
import type { Request, Response } from 'express';
import { createSessionCookies } from './session-cookies.ts';
import type { Session } from './session.ts';

const session: Session = { kind: 'company', companyId: 'comp_a', keyHash: 'hash', endsAtMs: 2_000 };

const statements = {
  sign: (text: string) => Buffer.from(text).toString('base64url'),
  read: (text: string) => Buffer.from(text, 'base64url').toString(),
};

const cookiesOf = (publicUrl: string | undefined) =>
  createSessionCookies({ statements, publicUrl, nowMs: () => 1_000 });

const requestWith = (cookie: string): Request =>
  ({ secure: false, headers: { cookie } }) as Request;

interface SetCookie {
  name: string;
  value: string;
  options: { path: string; secure: boolean };
}

function setBy(publicUrl: string | undefined): SetCookie {
  const set: SetCookie[] = [];
  const cookie = (name: string, value: string, options: SetCookie['options']): void => {
    set.push({ name, value, options });
  };
  cookiesOf(publicUrl).set(requestWith(''), { cookie } as unknown as Response, session);
  const [only] = set;
  if (!only) throw new Error('no cookie was set');
  return only;
}

const HTTPS = 'https://hooks.example.com/posthorn';

describe('the cookie of a session', () => {
  test('is of this host alone over https, so that no other host of the domain can set it', () => {
    const { name, options } = setBy(HTTPS);
    expect([name, options.path, options.secure]).toEqual(['__Host-posthorn_session', '/', true]);
  });

  test('is read over https by no other name', () => {
    const { name, value } = setBy(HTTPS);
    const read = (cookie: string) => cookiesOf(HTTPS).read(requestWith(cookie), 'company');
    expect(read(`${name}=${value}`)).toEqual(session);
    expect(read(`posthorn_session=${value}`)).toBeNull();
  });

  test('is kept to the path prefix over http', () => {
    const { name, options } = setBy('http://localhost:8080/posthorn');
    expect([name, options.path, options.secure]).toEqual(['posthorn_session', '/posthorn', false]);
  });

  test.each([HTTPS, undefined])('counts for nothing beside another of its name: %s', (url) => {
    const { name, value } = setBy(url);
    const read = (cookie: string) => cookiesOf(url).read(requestWith(cookie), 'company');
    expect(read(`a=b; ${name}=${value}; c=d`)).toEqual(session);
    expect(read(`${name}=${value}; ${name}=${value}`)).toBeNull();
    expect(read(`${name}=other; ${name}=${value}`)).toBeNull();
  });
});
