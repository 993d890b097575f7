import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Stop } from './audit/evidence.ts';
import { type Result, writeResult, type WrittenResult } from './report.ts';
import { endStack } from './run-suite.ts';

type Audited = Extract<Result, { kind: 'audited' }>;

const NAME = 'F2-2026-11-22T120000';

/** A round in which nothing was wrong. */
function goodResult(): Audited {
  return {
    kind: 'audited',
    round: 'F2',
    repetition: 0,
    seconds: 10,
    startedAt: '2026-11-22T12:00:00.000Z',
    rate: 100,
    seed: 1,
    notes: [],
    verdict: {
      accepted: 1,
      notSent: 0,
      unknown: 0,
      unknownArrived: 0,
      deliveries: 1,
      delivered: 1,
      exhausted: 0,
      lost: 0,
      requests: 1,
      duplicatesByReason: {},
      stored: 1,
      records: 1,
      earlyRetries: 0,
      recoveredAfterMs: 0,
      longestFirstMs: 10,
      latestRetryMs: 0,
      slowestAnswerMs: 10,
      answers: { 202: 1 },
      findings: [],
    },
  };
}

describe('the end of a stack', () => {
  let resultsPath = '';

  beforeEach(() => {
    resultsPath = mkdtempSync(join(tmpdir(), 'posthorn-suite-stack-'));
  });

  afterEach(() => {
    rmSync(resultsPath, { recursive: true });
  });

  /** A stack with one service, used by a good round, whose result is written. */
  function suiteOf(ends: { stops?: Stop[]; crashes?: string[] }, signal?: AbortSignal) {
    const calls: string[] = [];
    const usedBy = goodResult();
    writeResult(resultsPath, usedBy);
    const fleet = {
      running: () => ['gateway-1' as const],
      stop: (member: string) => {
        calls.push(`stop ${member}`);
        return Promise.resolve();
      },
      takeEnds: () => ({ stops: ends.stops ?? [], crashes: ends.crashes ?? [] }),
    };
    const folder = {
      stop: () => {
        calls.push('stop the stores');
        return Promise.resolve();
      },
      copyLogs: (to: string) => {
        calls.push('copy the logs');
        mkdirSync(to);
        writeFileSync(join(to, 'gateway-1.log'), '');
      },
    };
    const suite = {
      command: { resultsPath },
      signal: signal ?? new AbortController().signal,
      folder,
      log: () => undefined,
      stack: { fleet },
      usedBy,
    };
    return { suite, usedBy, calls };
  }

  const writtenFindings = () => {
    const text = readFileSync(join(resultsPath, `${NAME}.json`), 'utf8');
    const { result } = JSON.parse(text) as WrittenResult;
    return (result as Audited).verdict.findings;
  };

  it('writes a wrong stop and a late crash into the result that used the stack', async () => {
    const { suite, usedBy, calls } = suiteOf({
      stops: [
        { service: 'gateway-1', tookMs: 300, exit: 'exit code 1' },
        { service: 'gateway-2', tookMs: 300, exit: 'exit code 0' },
      ],
      crashes: ['retry-1: exit code 2'],
    });
    await endStack(suite);
    const findings = [
      { what: 'a service ended by itself', count: 1, examples: ['retry-1: exit code 2'] },
      {
        what: 'a stop went wrong',
        count: 1,
        examples: ['gateway-1 ended with exit code 1 after 300 ms'],
      },
    ];
    expect(usedBy.verdict.findings).toEqual(findings);
    expect(writtenFindings()).toEqual(findings);
    expect(calls).toEqual(['stop gateway-1', 'copy the logs', 'stop the stores']);
    expect(existsSync(join(resultsPath, `${NAME}-logs`, 'gateway-1.log'))).toBe(true);
    expect([suite.stack, suite.usedBy]).toEqual([undefined, undefined]);
  });

  it('keeps no logs when every service stopped as it should', async () => {
    const { suite, calls } = suiteOf({});
    await endStack(suite);
    expect(writtenFindings()).toEqual([]);
    expect(calls).toEqual(['stop gateway-1', 'stop the stores']);
  });

  it('says nothing about services that Ctrl-C has ended', async () => {
    const stops = [{ service: 'gateway-1', tookMs: 300, exit: 'SIGKILL' }];
    const { suite } = suiteOf({ stops }, AbortSignal.abort());
    await expect(endStack(suite)).rejects.toThrow('aborted');
    expect(writtenFindings()).toEqual([]);
  });
});
