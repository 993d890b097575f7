import { beforeEach, describe, expect, test } from '@jest/globals';
import type { OperatorIncident } from '@posthorn/domain/operator-events.ts';
import { HOUR_MS, noAttempts } from '@posthorn/domain/stats.ts';
import type { FailingWebhook } from '@posthorn/platform/mongo/webhooks/failing-webhooks.ts';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../test/support/memory/memory-leases.ts';
import { collectLogLines } from '../../../test/support/sources/log-lines.ts';
import { createFailingWatch, type FailingWatchDeps } from './watch-failing-endpoints.ts';

const hour = (n: number): number => n * HOUR_MS;
const HOURS_TO_40 = Array.from({ length: 40 }, (_, n) => n);

const WEBHOOK: FailingWebhook = {
  id: 'wh_1',
  companyId: 'comp_a',
  disabled: false,
  changedAtMs: -1,
  told: null,
};

let nowMs: number;
let webhook: FailingWebhook | null;
/** The hours in which all attempts failed. */
let failedIn: number[];
let doOthersSucceed: boolean;
let areConfirmed: boolean;
let told: OperatorIncident[];
let disabledFor: string[];
let leases: MemoryLeases;
let isKafkaAway: boolean;
let addedUpToMs: number;

beforeEach(() => {
  webhook = WEBHOOK;
  [nowMs, failedIn, doOthersSucceed, areConfirmed] = [hour(40) + 600_000, HOURS_TO_40, true, true];
  [told, disabledFor, isKafkaAway, leases] = [[], [], false, createMemoryLeases()];
  addedUpToMs = Infinity;
});

function depsOf(autoDisableAfterMs: number | null): FailingWatchDeps {
  return {
    holder: 'process-1',
    autoDisableAfterMs,
    leases,
    stats: {
      isAddedUpTo: (ms) => Promise.resolve(ms <= addedUpToMs),
      readFailingIn: (hourMs) =>
        Promise.resolve(
          failedIn.includes(hourMs / HOUR_MS) ? [{ companyId: 'comp_a', webhookId: 'wh_1' }] : [],
        ),
      hasSuccessIn: () => Promise.resolve(doOthersSucceed),
      readSteps(_owner, _step, { fromMs, toMs }) {
        const hours = failedIn.map(hour).filter((atMs) => atMs >= fromMs && atMs < toMs);
        const counts = { ...noAttempts(), outcomes: { timeout: 2 } };
        return Promise.resolve(hours.map((atMs) => ({ atMs, counts })));
      },
    },
    webhooks: {
      findOne: () => Promise.resolve(webhook),
      hasOnlyFailed: () => Promise.resolve(areConfirmed),
      markTold: (seen, what) => Promise.resolve(void (webhook = { ...seen, told: what })),
    },
    disableWebhook(_seen, reason) {
      disabledFor.push(reason);
      webhook = { ...WEBHOOK, disabled: true };
      return Promise.resolve(true);
    },
    publish: (incident) =>
      isKafkaAway
        ? Promise.reject(new Error('Kafka is away'))
        : Promise.resolve(void told.push(incident)),
    keepTrying: (_purpose, step) => step(),
    logger: collectLogLines().logger,
    nowMs: () => nowMs,
  };
}

const look = (autoDisableAfterMs: number | null = null): Promise<void> =>
  createFailingWatch(depsOf(autoDisableAfterMs)).tick();
const types = () => told.map(({ type }) => type);

describe('an endpoint that fails for a day', () => {
  test('is told once, whoever looks how often', async () => {
    await look();
    await look();
    expect(told).toEqual([
      {
        type: 'endpoint.failing',
        companyId: 'comp_a',
        webhookId: 'wh_1',
        detail: 'no attempt succeeded since 1970-01-01T03:00:00.000Z',
      },
    ]);
  });

  test('is told again later when Kafka was away', async () => {
    const watch = createFailingWatch(depsOf(null));
    isKafkaAway = true;
    await watch.tick();
    expect([types(), webhook?.told]).toEqual([[], null]);
    isKafkaAway = false;
    await watch.tick();
    expect(types()).toEqual(['endpoint.failing']);
  });

  test('is not told while the last hours may be incomplete', async () => {
    [failedIn, nowMs] = [HOURS_TO_40.slice(16), hour(40) + 599_999];
    await look();
    expect(types()).toEqual([]);
    nowMs += 1;
    addedUpToMs = hour(40) - 1;
    await look();
    expect(types()).toEqual([]);
    addedUpToMs = hour(40);
    await look();
    expect(types()).toEqual(['endpoint.failing']);
  });

  test.each<[string, () => void]>([
    ['a delivery contradicts the statistics', () => (areConfirmed = false)],
    ['it has no statistics', () => (failedIn = [])],
    ['it was deleted', () => (webhook = null)],
    ['a client changed its webhook', () => (webhook = { ...WEBHOOK, changedAtMs: hour(20) })],
    ['its webhook is disabled', () => (webhook = { ...WEBHOOK, disabled: true })],
    ['another process looks', () => leases.holders.set('failing-endpoints', 'process-2')],
  ])('is not told when %s', async (_why, change) => {
    change();
    await look();
    expect(types()).toEqual([]);
  });
});

describe('the webhook of an endpoint that fails', () => {
  const AFTER_MS = hour(48);
  const warned = (disableAtHour: number): void => {
    webhook = { ...WEBHOOK, told: { sinceMs: 0, disableAtMs: hour(disableAtHour) } };
    failedIn = [...HOURS_TO_40, ...HOURS_TO_40.map((n) => n + 40)];
    nowMs = hour(60) + 600_000;
  };

  test('is disabled a day after the warning', async () => {
    warned(60);
    await look(AFTER_MS);
    expect(types()).toEqual(['endpoint.disabled']);
    expect(disabledFor).toEqual(['failing']);
  });

  test('is warned of with the time at which it will be disabled', async () => {
    webhook = { ...WEBHOOK, told: { sinceMs: 0, disableAtMs: null } };
    await look(AFTER_MS);
    expect(told).toMatchObject([
      {
        type: 'endpoint.to_be_disabled',
        detail:
          'no attempt succeeded since 1970-01-01T00:00:00.000Z; its webhook is disabled at 1970-01-03T16:00:00.000Z unless one does',
      },
    ]);
    expect(webhook.told).toEqual({ sinceMs: 0, disableAtMs: hour(64) });
  });

  test.each<[string, () => void]>([
    ['no other endpoint succeeds', () => (doOthersSucceed = false)],
    ['a delivery contradicts the statistics', () => (areConfirmed = false)],
    ['its statistics are missing', () => (failedIn = [59])],
    ['the last statistics are missing', () => (failedIn = HOURS_TO_40)],
    [
      'its time has not come',
      () => {
        warned(61);
      },
    ],
  ])('stays enabled while %s', async (_why, change) => {
    warned(60);
    change();
    await look(AFTER_MS);
    expect([webhook?.disabled, disabledFor]).toEqual([false, []]);
  });
});
