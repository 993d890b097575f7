import { describe, expect, test } from '@jest/globals';
import { openAdvisories, parseSbom, refusedLicences } from './package-rules.ts';

const sbomOf = (...components: object[]) =>
  parseSbom(JSON.stringify({ bomFormat: 'CycloneDX', components }));
const withLicence = (id: string) => ({ 'bom-ref': 'p@1.0.0', licenses: [{ license: { id } }] });

describe('licences [security]', () => {
  test('are good when they ask for a notice only', () => {
    expect(refusedLicences(sbomOf(withLicence('MIT'), withLicence('Apache-2.0')))).toEqual([]);
  });

  test.each([
    ['another one', withLicence('GPL-3.0-only'), 'p@1.0.0: GPL-3.0-only'],
    ['none', { 'bom-ref': 'p@1.0.0' }, 'p@1.0.0: no licence'],
    [
      'a choice, which a person has to read',
      { 'bom-ref': 'p@1.0.0', licenses: [{ expression: '(MIT OR GPL-2.0)' }] },
      'p@1.0.0: (MIT OR GPL-2.0)',
    ],
  ])('are refused: %s', (_which, component, refusal) => {
    expect(refusedLicences(sbomOf(component))).toEqual([refusal]);
  });
});

describe('advisories [security]', () => {
  const url = 'https://github.com/advisories/GHSA-1';
  const advisory = { url, title: 'Prototype pollution', severity: 'high' };
  const audit = JSON.stringify({
    vulnerabilities: { one: { via: [advisory] }, other: { via: ['one'] } },
  });

  test('are listed once, unless they are accepted', () => {
    expect(openAdvisories(audit, {})).toEqual([`one: Prototype pollution (high, ${url})`]);
    expect(openAdvisories(audit, { 'GHSA-1': 'not reached' })).toEqual([]);
  });

  test.each(['', 'not JSON', '{"message":"405 Method Not Allowed"}'])(
    'are not known from %j',
    (text) => {
      expect(openAdvisories(text, {})).toBeNull();
    },
  );
});
