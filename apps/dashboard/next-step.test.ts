import { describe, expect, it } from '@jest/globals';
import { ERROR_CODES } from '../../services/gateway/src/error-codes.ts';
import { hasWords, nextStepOf } from './src/api/failure-words.ts';
import { portalMessageOf } from './src/api/failure-words.ts';

const CODES = Object.entries(ERROR_CODES).map(([code, { status }]) => [code, status] as const);

const UNKNOWN_TO_VISITORS = /\bkeys?\b|compan|operator|quota|scope|gateway/i;

describe('what to do next', () => {
  it.each(CODES)('is decided for %s', (code) => {
    expect(hasWords(code)).toBe(true);
  });

  it('is the id to check for what is not found, and for nothing else', () => {
    const found = CODES.filter(([code, status]) =>
      /the id\b/.test(nextStepOf(code, status, 'key')),
    );
    expect(found).toEqual([['not_found', 404]]);
  });

  it('tells wrong keys from too many requests', () => {
    expect(nextStepOf('too_many_wrong_keys', 429, 'key')).toContain('check the key');
    expect(nextStepOf('rate_limited', 429, 'key')).not.toContain('key');
  });

  it('is another link for one that does not open', () => {
    for (const code of ['link_unknown', 'link_used', 'link_expired', 'link_revoked']) {
      expect(nextStepOf(code, 410, 'key')).toContain('makes a new one');
    }
  });

  it.each(CODES)(
    'names nothing that a visitor of the portal does not know for %s',
    (code, status) => {
      expect(nextStepOf(code, status, 'visitor')).not.toMatch(UNKNOWN_TO_VISITORS);
    },
  );

  it('names none of that for an answer without a known code either', () => {
    for (const status of [418, 502, 503]) {
      expect(nextStepOf('unknown_answer', status, 'visitor')).not.toMatch(UNKNOWN_TO_VISITORS);
    }
  });

  it('follows the status of an answer without a known code', () => {
    expect(nextStepOf('unknown_answer', 503, 'key')).toContain('Try again');
    expect(nextStepOf('unknown_answer', 502, 'key')).toContain('Tell the operator');
    expect(nextStepOf('unknown_answer', 418, 'key')).toBe('');
  });
});

describe('the message of a failure in the portal', () => {
  // No page of the portal rotates API keys, sends messages, or signs people in at an issuer.
  const notThere = [
    'key_of_link',
    'idempotency_key_running',
    'idempotency_key_reused',
    'no_role',
    'sign_in_by_key_off',
  ];
  const there = Object.entries(ERROR_CODES).filter(([code]) => !notThere.includes(code));

  it.each(there)('names nothing that a visitor does not know for %s', (code, { message }) => {
    const shown = portalMessageOf(code, message);
    expect(shown).not.toBe('');
    expect(shown).not.toMatch(UNKNOWN_TO_VISITORS);
  });

  it('keeps the number of a limit', () => {
    const message = 'The limit is 20 webhooks for each app (QUOTA_WEBHOOKS_PER_APP).';
    const shown = portalMessageOf('quota_exceeded', message);
    expect(shown).toBe('The limit is 20 webhooks for each app.');
  });
});
