import { describe, expect, it } from '@jest/globals';
import { ERROR_CODES } from '../../services/gateway/src/api/openapi/error-codes.ts';
import { hasWords, nextStepOf } from './src/words/next-step.ts';

const CODES = Object.entries(ERROR_CODES).map(([code, { status }]) => [code, status] as const);

describe('what to do next', () => {
  it.each(CODES)('is decided for %s', (code) => {
    expect(hasWords(code)).toBe(true);
  });

  it('is the id to check for what is not found, and for nothing else', () => {
    const found = CODES.filter(([code, status]) =>
      /the id\b/.test(nextStepOf(code, status, false)),
    );
    expect(found).toEqual([['not_found', 404]]);
  });

  it('tells wrong keys from too many requests', () => {
    expect(nextStepOf('too_many_wrong_keys', 429, false)).toContain('check the key');
    expect(nextStepOf('rate_limited', 429, false)).not.toContain('key');
  });

  it('is another link for one that does not open', () => {
    for (const code of ['link_unknown', 'link_used', 'link_expired', 'link_revoked']) {
      expect(nextStepOf(code, 410, false)).toContain('makes a new one');
    }
  });

  it('names no API key, company or operator to a visitor of the portal', () => {
    const words = ['insufficient_scope', 'not_found', 'internal_error', 'link_used'];
    const steps = words.map((code) => nextStepOf(code, 500, true));
    expect(steps.join()).not.toMatch(/API key|company|operator/);
  });

  it('follows the status of an answer without a known code', () => {
    expect(nextStepOf('unknown_answer', 503, false)).toContain('Try again');
    expect(nextStepOf('unknown_answer', 502, false)).toContain('Tell the operator');
    expect(nextStepOf('unknown_answer', 418, false)).toBe('');
  });
});
