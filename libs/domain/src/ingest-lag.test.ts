import { describe, expect, it } from '@jest/globals';
import { causeOfLag, type ReadPartition, reportOf, sentenceOfLag } from './ingest-lag.ts';

describe('the cause of a lag', () => {
  const report = { reason: 'company_suspended', perSecond: 0 } as const;

  it('is that nobody reads, whatever a former owner has reported', () => {
    const reasonOf = (group: 'empty' | 'changing' | 'stable') =>
      causeOfLag({ group, isOwned: false, report }).reason;
    expect([reasonOf('empty'), reasonOf('changing'), reasonOf('stable')]).toEqual([
      'no_process',
      'rebalancing',
      'no_reader',
    ]);
  });

  it('is the report of the process that has the partition, and unknown without one', () => {
    expect(causeOfLag({ group: 'stable', isOwned: true, report })).toEqual(report);
    const silent = causeOfLag({ group: 'stable', isOwned: true, report: null });
    expect(silent).toEqual({ reason: 'unknown', perSecond: 0 });
  });

  it('has the speed of a backlog in its sentence', () => {
    expect(sentenceOfLag({ reason: 'backlog', perSecond: 41.6 })).toBe(
      'Its records are being read, 42 per second.',
    );
    expect(sentenceOfLag(report)).toBe('Its company is suspended.');
  });
});

describe('the report about a partition', () => {
  const READ: ReadPartition = {
    retried: null,
    inFlight: false,
    hasRoom: true,
    areStoresUp: true,
    isSteady: true,
    perSecond: 0,
  };
  const reasonOf = (changed: Partial<ReadPartition>) =>
    reportOf({ ...READ, ...changed })?.reason ?? null;

  it('is none where nothing is read and nothing is kept from being read', () => {
    expect(reasonOf({})).toBeNull();
    expect(reasonOf({ isSteady: false })).toBeNull();
  });

  it('is a backlog while records are in flight or were finished', () => {
    expect(reasonOf({ inFlight: true })).toBe('backlog');
    expect(reportOf({ ...READ, perSecond: 7 })).toEqual({ reason: 'backlog', perSecond: 7 });
    expect(reasonOf({ inFlight: true, areStoresUp: false })).toBe('backlog');
  });

  it('is the reason of the last try before everything else', () => {
    const retried = 'rate_limited';
    expect(reasonOf({ retried, inFlight: true, isSteady: false, perSecond: 9 })).toBe(retried);
  });

  it('names what keeps a partition without records in flight from being read', () => {
    expect(reasonOf({ areStoresUp: false, hasRoom: false })).toBe('store_unavailable');
    expect(reasonOf({ hasRoom: false })).toBe('waiting_for_budget');
    expect(reasonOf({ inFlight: true, isSteady: false })).toBe('rebalancing');
  });
});
