import { describe, expect, test } from '@jest/globals';
import { pathText, themeSchema } from '../../services/gateway/src/routes/portal.ts';
import { problemsOf, type LinkDraft } from './src/pages/projects/portal-link-rules.ts';

const DRAFT: LinkDraft = {
  capabilities: ['view'],
  minutes: '60',
  path: '',
  name: '',
  logoUrl: '',
  primaryColor: '',
  colorScheme: 'auto',
};

const svg = (chars: number): string => `data:image/svg+xml;base64,${'A'.repeat(chars)}`;

describe('the form of a portal link refuses what the gateway refuses', () => {
  test.each([
    ...[
      '/webhooks',
      '/webhooks/wh_1?tab=settings',
      '/messages?status=exhausted&from=2026-01-31T09:30',
    ],
    ...['webhooks', '/', '//evil', '/a/../b', '/a#b', '/ä', `/${'a'.repeat(500)}`],
  ])('path %s', (path) => {
    const isRefused = problemsOf({ ...DRAFT, path }).path !== undefined;
    expect(isRefused).toBe(!pathText.safeParse(path).success);
  });

  test.each([
    ...['https://app.example.com/logo.svg', 'https://app.example.com/a.png?v=2', svg(8)],
    ...['http://app.example.com/logo.svg', 'https://1.2.3.4/logo', 'logo.svg', svg(70_000)],
    ...['https://a.com:65535/a.png', 'https://a.com:65536/a.png', 'https://a.com:99999/a.png'],
    ...[`https://app.example.com/${'a'.repeat(101)}`, `https://app.example.com${'/a'.repeat(16)}`],
    ...['data:text/html;base64,AAAA', 'https://user@app.example.com/logo.svg'],
  ])('logo %s', (logoUrl) => {
    const isRefused = problemsOf({ ...DRAFT, logoUrl }).logoUrl !== undefined;
    expect(isRefused).toBe(!themeSchema.safeParse({ logoUrl }).success);
  });

  test.each(['#1c7ed6', '#FFF000', '#fff', 'red', '#1c7ed', '#1c7ed6ff'])('colour %s', (color) => {
    const isRefused = problemsOf({ ...DRAFT, primaryColor: color }).primaryColor !== undefined;
    expect(isRefused).toBe(!themeSchema.safeParse({ primaryColor: color }).success);
  });

  test.each(['Acme', 'ä'.repeat(100), '💠'.repeat(100), 'a'.repeat(101)])('name %s', (name) => {
    const isRefused = problemsOf({ ...DRAFT, name }).name !== undefined;
    expect(isRefused).toBe(!themeSchema.safeParse({ name }).success);
  });

  test.each([
    ['1', false],
    ['10080', false],
    ['0', true],
    ['10081', true],
    ['1.5', true],
    ['', true],
  ])('minutes %s', (minutes, isRefused) => {
    expect(problemsOf({ ...DRAFT, minutes }).minutes !== undefined).toBe(isRefused);
  });
});
