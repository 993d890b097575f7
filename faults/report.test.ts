import { describe, expect, it } from '@jest/globals';
import { rowOf, findingsOf, isSound, type Result } from './report.ts';

const BASE = { round: 'F2', repetition: 1, seconds: 10, startedAt: '2026-11-22T12:00:00.000Z' };

const AUDITED: Result = {
  ...BASE,
  kind: 'audited',
  rate: 100,
  seed: 1,
  notes: [],
  verdict: {
    accepted: 10,
    notSent: 3,
    unknown: 2,
    unknownArrived: 1,
    deliveries: 12,
    delivered: 11,
    exhausted: 1,
    lost: 0,
    requests: 15,
    duplicatesByReason: { 'in flight at the kill': 3 },
    stored: 13,
    records: 14,
    earlyRetries: 0,
    recoveredAfterMs: 4_100,
    longestFirstMs: 5_000.4,
    latestRetryMs: 700,
    slowestAnswerMs: 30.4,
    answers: { 202: 10, 'no answer': 2 },
    findings: [],
  },
};

describe('the table of results', () => {
  it('has a row for each run', () => {
    expect(rowOf(AUDITED)).toEqual({
      round: 'F2 2 (10 s)',
      verdict: 'good',
      accepted: 10,
      'not sent': 3,
      deliveries: 12,
      delivered: 11,
      exhausted: 1,
      lost: 0,
      'records published': 14,
      'answer lost (arrived)': '2 (1)',
      duplicates: '3 in flight at the kill',
      'early retries': 0,
      'lag < 2 s after': '4100 ms',
      'first request, at most': '5000 ms',
      'retry late by, at most': '700 ms',
      'slowest answer': '30 ms',
      answers: '10 × 202, 2 × no answer',
    });
  });

  it('shows a round that could not be run to its end as wrong', () => {
    const broken: Result = { ...BASE, kind: 'broken off', reason: 'no tag' };
    expect(rowOf(broken)).toEqual({ round: 'F2 2 (10 s)', verdict: 'WRONG' });
    expect(findingsOf(broken)).toEqual([{ what: 'broken off', count: 1, examples: ['no tag'] }]);
    expect([isSound(broken), isSound(AUDITED)]).toEqual([false, true]);
  });
});
