import { beforeEach, describe, expect, test } from '@jest/globals';
import type { StuckDelivery } from '@posthorn/domain/delivery/stuck-delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Attempt } from '@posthorn/domain/delivery/delivery.ts';
import { decodeEndedAttempt } from '@posthorn/domain/records/records.ts';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import { LEASE_MS } from '@posthorn/platform/mongo/leases.ts';
import { CHECK_SHARES, shareOf } from '@posthorn/platform/mongo/messages/message-checks.ts';
import type { WebhookState } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { Registry } from 'prom-client';
import {
  createMemoryLeases,
  type MemoryLeases,
} from '../../../../test/support/memory/memory-leases.ts';
import {
  createMemorySweep,
  type MemorySweep,
} from '../../../../test/support/memory/memory-sweep.ts';
import { countingIds, sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { createRandom } from '../../../../test/support/samples/seeded-random.ts';
import { createRandomSchedule } from '../../../../test/support/time/random-schedule.ts';
import { createRetryMetrics } from '../metrics.ts';
import { createStuckSweep, remedyRecord } from './sweep-stuck.ts';

describe('sweep stuck', () => {
  const NOW_MS = 1_800_000_000_000;
  const DAY_MS = 86_400_000;

  const NO_BACKLOG: WebhookState = {
    disabled: false,
    cancelBeforeMs: null,
    hasRateLimit: false,
    deferredAtMs: null,
    ordering: 'none' as const,
  };

  let memory: MemorySweep;
  let monotonicMs: () => number;
  let pauses: number[];
  let onPause: () => void;
  let leases: MemoryLeases;
  /** What happened, in order. */
  let events: string[] = [];
  let onPublish: () => Promise<void>;
  let registry: Registry;

  beforeEach(() => {
    memory = createMemorySweep(NOW_MS);
    leases = createMemoryLeases();
    events = [];
    onPublish = () => Promise.resolve();
    registry = new Registry();
    monotonicMs = () => 0;
    pauses = [];
    onPause = () => undefined;
  });

  const shareLease = (share: number): string => `reconciler/${share}`;

  /** From the next pause on, another process has this lease. */
  function loseAtPause(lease: string): void {
    onPause = () => {
      leases.holders.set(lease, 'other');
      monotonicMs = () => LEASE_MS;
    };
  }

  function createTestSweep(
    backlog: Partial<WebhookState> = {},
    process: Partial<Parameters<typeof createStuckSweep>[0]> = {},
  ) {
    const { checks, stuck, deliveryStore } = memory;
    return createStuckSweep({
      holder: 'me',
      afterMs: DAY_MS,
      monotonicMs: () => monotonicMs(),
      pause: (ms) => {
        pauses.push(ms);
        onPause();
        return Promise.resolve();
      },
      logger: createLogger('test', 'silent'),
      topics: { retryDue: 'due', deliveryFailed: 'failed' },
      metrics: createRetryMetrics(registry, [], () => NOW_MS).stuck,
      leases,
      checks,
      webhooks: {
        statesOf: (ids) =>
          Promise.resolve(new Map(ids.map((id) => [id, { ...NO_BACKLOG, ...backlog }]))),
      },
      stuck: {
        ...stuck,
        markSwept: (swept, atMs) => {
          events.push(`mark ${swept.length}`);
          return stuck.markSwept(swept, atMs);
        },
      },
      deliveries: {
        insertAll: (missing) => {
          events.push(`insert ${missing.length}`);
          return deliveryStore.insertAll(missing);
        },
      },
      records: {
        publish: async (records) => {
          await onPublish();
          events.push(`publish ${records.length} to ${records[0]?.topic ?? ''}`);
        },
      },
      ...process,
    });
  }

  /**
   * Two to four processes sweep at the same time, each step at a random time. With `isKilled` one of them stops for ever
   * at a random step, and its leases end later. Returns how often each message was checked.
   */
  async function sweepAtOnce(seed: number, isKilled: boolean): Promise<Map<string, number>> {
    const random = createRandom(seed);
    const schedule = createRandomSchedule(random);
    leases = createMemoryLeases();
    const checked = new Map<string, number>();
    const slots = Array.from({ length: 60 }, () => NOW_MS - 2 * DAY_MS + random() * 1_200_000);
    memory = createMemorySweep(NOW_MS);
    memory.messages.push(...slots.map((ms) => sampleMessage(countingIds(Math.floor(ms))('msg'))));
    let stepsOfFirst = isKilled ? Math.floor(random() * 150) : Infinity;
    const { checks } = memory;
    const sweeps = Array.from({ length: 2 + Math.floor(random() * 3) }, (_, n) => {
      const turn = async (): Promise<void> => {
        if (n === 0 && (stepsOfFirst -= 1) < 0) await new Promise(() => undefined);
        await schedule.turn();
      };
      const inTurn =
        <Args extends unknown[], Result>(run: (...args: Args) => Promise<Result>) =>
        async (...args: Args): Promise<Result> => {
          await turn();
          return run(...args);
        };
      registry = new Registry();
      return createTestSweep(
        {},
        {
          holder: `retry-${n}`,
          leases: { hold: inTurn(leases.hold), release: inTurn(leases.release) },
          pause: turn,
          checks: {
            ...checks,
            checkedTo: inTurn(checks.checkedTo),
            recordedAmong: inTurn((ids) => {
              for (const id of ids) checked.set(id, (checked.get(id) ?? 0) + 1);
              return checks.recordedAmong(ids);
            }),
            markChecked: inTurn(checks.markChecked),
            markComplete: inTurn(checks.markComplete),
          },
        },
      );
    });
    const done = sweeps.slice(isKilled ? 1 : 0).map((sweep) => sweep.tick());
    if (isKilled) void sweeps[0]?.tick();
    await schedule.runAll();
    for (const [name, holder] of leases.holders) {
      if (holder === 'retry-0') leases.holders.delete(name);
    }
    const next = sweeps.slice(1).map((sweep) => sweep.tick());
    await schedule.runAll();
    await Promise.all([...done, ...next]);
    return checked;
  }

  async function counted(found: string): Promise<number | undefined> {
    const { values = [] } =
      (await registry.getSingleMetric('posthorn_reconciled_deliveries_total')?.get()) ?? {};
    return values.find(({ labels }) => labels.found === found)?.value;
  }

  async function valueOf(name: string): Promise<number | undefined> {
    return (await registry.getSingleMetric(`posthorn_reconcile_${name}`)?.get())?.values[0]?.value;
  }

  const lastPassSeconds = (): Promise<number | undefined> => valueOf('last_pass_timestamp_seconds');
  const positionAgeMs = async (): Promise<number> =>
    1_000 * ((await valueOf('position_age_seconds')) ?? NaN);

  const MOVED = ['publish 1 to due', 'mark 1'];

  describe('sweeps of several processes', () => {
    const idsOf = (): string[] => memory.messages.map(({ id }) => deliveryIdOf(id, 'wh_1')).sort();

    test('check every message once', async () => {
      for (let seed = 1; seed <= 30; seed += 1) {
        const checked = await sweepAtOnce(seed, false);
        expect([seed, [...checked.keys()].sort()]).toEqual([seed, idsOf()]);
        expect([seed, Math.max(...checked.values())]).toEqual([seed, 1]);
      }
    });

    test('skip no message of a process that has died', async () => {
      let checkedAgain = 0;
      for (let seed = 1; seed <= 60; seed += 1) {
        const checked = await sweepAtOnce(seed, true);
        expect([seed, [...checked.keys()].sort()]).toEqual([seed, idsOf()]);
        expect([seed, [...memory.deliveries.keys()].sort()]).toEqual([seed, idsOf()]);
        if (Math.max(...checked.values()) > 1) checkedAgain += 1;
      }
      expect(checkedAgain).toBeGreaterThan(0);
    });
  });

  describe('a sweep of stuck deliveries', () => {
    test('publishes overdue attempts and then marks them, so that the next sweep skips them', async () => {
      memory.add({ nextAttemptAtMs: NOW_MS - DAY_MS - 1 });
      memory.add({ nextAttemptAtMs: NOW_MS - DAY_MS });
      const { tick } = createTestSweep();
      await tick();
      await tick();
      expect(events).toEqual(['publish 1 to due', 'mark 1']);
      expect(await counted('overdue_retry')).toBe(1);
    });

    test.each([
      ['with a rate limit, two days old', { hasRateLimit: true }, 2, ['mark 1']],
      ['with a backlog, two days old', { deferredAtMs: NOW_MS - 1 }, 2, ['mark 1']],
      ['with a rate limit, eight days old', { hasRateLimit: true }, 8, MOVED],
      ['with a backlog, eight days old', { deferredAtMs: NOW_MS - 1 }, 8, MOVED],
      ['whose backlog was marked a day ago', { deferredAtMs: NOW_MS - DAY_MS }, 2, MOVED],
    ])(
      'moves a delivery to a webhook %s, on after seven days only',
      async (_what, backlog, days, expected) => {
        memory.add({ nextAttemptAtMs: NOW_MS - 2 * DAY_MS });
        for (const [id, delivery] of memory.deliveries) {
          memory.deliveries.set(id, { ...delivery, createdAtMs: NOW_MS - days * DAY_MS });
        }
        await createTestSweep(backlog).tick();
        expect(events).toEqual(expected);
      },
    );

    test('publishes and marks nothing that waits for the end of a hold', async () => {
      memory.add({ nextAttemptAtMs: NOW_MS - DAY_MS - 1 });
      const [id = '', delivery] = [...memory.deliveries][0] ?? [];
      const waitingSinceMs = NOW_MS - DAY_MS;
      const since = { waitingSinceMs, updatedAtMs: waitingSinceMs };
      if (delivery) memory.deliveries.set(id, { ...delivery, waiting: 'hold', ...since });
      await createTestSweep().tick();
      expect(events).toEqual([]);
      expect(await counted('overdue_retry')).toBe(0);
      expect(await lastPassSeconds()).toBeGreaterThan(0);
    });

    test('publishes the last failure of a schedule that was not ended', async () => {
      memory.add({ nextAttemptAtMs: null });
      const { tick } = createTestSweep();
      await tick();
      await tick();
      expect(events).toEqual(['publish 1 to failed', 'mark 1']);
      expect(await counted('unended_schedule')).toBe(1);
    });

    test('records the delivery of a lost message and moves it on in the same sweep, once', async () => {
      memory.add();
      memory.add({ nextAttemptAtMs: NOW_MS });
      const { tick } = createTestSweep();
      await tick();
      await tick();
      expect(events).toEqual(['insert 1', 'publish 1 to due', 'mark 1']);
      expect(await counted('lost_message')).toBe(1);
    });

    test('records nothing for a webhook that was disabled at acceptance: the message states it', async () => {
      const message = memory.add();
      message.targets.push('wh_2');
      message.disabledTargets = new Set(['wh_2']);
      await createTestSweep().tick();
      expect([...memory.deliveries.values()].map(({ webhookId }) => webhookId)).toEqual(['wh_1']);
    });

    test('reads many pages and stores its position', async () => {
      for (let n = 0; n < 12_450; n += 1) memory.add();
      const last = memory.messages.at(-1)?.id;
      await createTestSweep().tick();
      expect(memory.checkedTo()).toBe(last);
      expect(events.filter((event) => event.startsWith('insert'))).toEqual([
        ...['insert 5000', 'insert 5000', 'insert 2450'],
      ]);
      expect(await counted('lost_message')).toBe(12_450);
      expect(await lastPassSeconds()).toBeGreaterThan(0);
    });

    test('pauses between pages only while it keeps up, for as long as it works', async () => {
      const [old, recent] = [NOW_MS - 2 * DAY_MS, NOW_MS - DAY_MS - 1_000];
      for (const firstMs of [old, recent]) {
        const newId = countingIds(firstMs);
        for (let n = 0; n < 5_000; n += 1) {
          memory.messages.push(sampleMessage(newId('msg'), { targets: [] }));
        }
      }
      let ms = 0;
      monotonicMs = () => ms;
      const recordedAmong = (ids: readonly string[]): Promise<Set<string>> => {
        ms += 10;
        return memory.checks.recordedAmong(ids);
      };
      await createTestSweep({}, { checks: { ...memory.checks, recordedAmong } }).tick();
      expect(pauses.slice(0, 2)).toEqual([0, 10]);
    });

    test('tells the age of its position while it works, and when there is nothing left', async () => {
      const { id, createdAtMs } = memory.add();
      const { tick } = createTestSweep();
      expect(await positionAgeMs()).toBe(0);
      let whileItWorks = 0;
      onPublish = async () => {
        whileItWorks = await positionAgeMs();
      };
      const own = shareOf(id);
      for (let share = 0; share < CHECK_SHARES; share += 1) {
        if (share !== own) await memory.checks.markComplete(share, NOW_MS - DAY_MS);
      }
      // The sweep ends after the only page of the share, and before it knows that the share is complete.
      loseAtPause(shareLease(own));
      await tick();
      expect(await positionAgeMs()).toBe(NOW_MS - createdAtMs);
      leases.holders.clear();
      onPause = () => undefined;
      await tick();
      expect([whileItWorks, await positionAgeMs()]).toEqual([NOW_MS - createdAtMs, DAY_MS]);
    });

    test('tells the age of the share that is furthest behind, also when other processes check it', async () => {
      const { id, createdAtMs } = memory.add();
      for (let share = 0; share < CHECK_SHARES; share += 1) {
        await memory.checks.markComplete(share, NOW_MS - 1);
        leases.holders.set(shareLease(share), 'other');
      }
      await memory.checks.markComplete(5, 0);
      await memory.checks.markChecked(5, id);
      await createTestSweep().tick();
      expect(await positionAgeMs()).toBe(NOW_MS - createdAtMs);
    });

    test('moves deliveries on after a minute of checks, and then continues with the checks', async () => {
      for (let n = 0; n < 10_000; n += 1) memory.add();
      let ms = 0;
      monotonicMs = () => (ms += 25_000);
      await createTestSweep().tick();
      const kinds = events.map((event) => event.split(' ')[0]);
      const firstMove = kinds.indexOf('publish');
      expect(kinds.slice(0, firstMove)).toEqual(['insert']);
      expect(kinds.lastIndexOf('insert')).toBeGreaterThan(firstMove);
      expect([await counted('lost_message'), memory.checkedTo()]).toEqual([
        10_000,
        memory.messages.at(-1)?.id,
      ]);
    });

    test('reads few messages at once when they have thousands of targets', async () => {
      const targets = Array.from({ length: 3_000 }, (_, n) => `wh_${n}`);
      for (let n = 0; n < 3; n += 1) Object.assign(memory.add(), { targets });
      await createTestSweep().tick();
      expect(events.filter((event) => event.startsWith('insert'))).toHaveLength(3);
      expect(await counted('lost_message')).toBe(9_000);
    });

    test('does not record deliveries that may have expired', async () => {
      const { createdAtMs } = memory.add();
      memory.keepFor(NOW_MS - createdAtMs + 3_600_000);
      await createTestSweep().tick();
      expect(events).toEqual([]);
      expect(await lastPassSeconds()).toBeGreaterThan(0);
      expect(memory.deliveries.size).toBe(0);
    });

    test('does not record deliveries that may have been removed at the end of their message', async () => {
      Object.assign(memory.add(), { removeAtMs: NOW_MS + 3_600_000 });
      Object.assign(memory.add(), { removeAtMs: NOW_MS + 3_600_001 });
      await createTestSweep().tick();
      expect(await counted('lost_message')).toBe(1);
    });

    test('marks nothing that Kafka did not acknowledge, and publishes it the next time', async () => {
      memory.add({ nextAttemptAtMs: 1 });
      const { tick } = createTestSweep();
      onPublish = () => Promise.reject(new Error('Kafka is away'));
      await tick();
      expect([events, await lastPassSeconds()]).toEqual([[], 0]);
      onPublish = () => Promise.resolve();
      await tick();
      expect(events).toEqual(['publish 1 to due', 'mark 1']);
    });

    test('leaves a share to the process that has its lease, also when that has taken it over', async () => {
      for (let n = 0; n < 5_250; n += 1) memory.add();
      const { tick } = createTestSweep();
      const own = shareOf(memory.messages[0]?.id ?? '');
      leases.holders.set(shareLease(own), 'other');
      await tick();
      expect([events, await memory.checks.checkedTo(own)]).toEqual([[], '']);
      leases.holders.clear();
      loseAtPause(shareLease(own));
      await tick();
      expect(events.filter((event) => event.startsWith('insert'))).toEqual(['insert 5000']);
      expect(await memory.checks.checkedTo(own)).toBe(memory.messages[4_999]?.id);
    });

    test('leaves the remedies to the process that has their lease, also when that has taken it over', async () => {
      for (let n = 0; n < 250; n += 1) memory.add({ nextAttemptAtMs: 1 });
      const { tick } = createTestSweep();
      leases.holders.set('reconciler', 'other');
      await tick();
      expect(events).toEqual([]);
      leases.holders.clear();
      onPublish = () => {
        loseAtPause('reconciler');
        return Promise.resolve();
      };
      await tick();
      expect(events).toEqual(['publish 200 to due', 'mark 200']);
    });

    test('stops between two pages when the process stops', async () => {
      for (let n = 0; n < 450; n += 1) memory.add({ nextAttemptAtMs: 1 });
      const { tick, stop } = createTestSweep();
      let stopped: Promise<void> | undefined;
      onPublish = () => {
        stopped = stop();
        return Promise.resolve();
      };
      await tick();
      await stopped;
      expect(events).toEqual(['publish 200 to due', 'mark 200']);
      expect([await lastPassSeconds(), leases.holders.size]).toEqual([0, 0]);
    });
  });
});

describe('stuck rules', () => {
  const NOW_MS = 1_700_000_000_000;
  const TOPICS = { retryDue: 'due', deliveryFailed: 'failed' };
  const REF = {
    messageId: 'msg_1',
    webhookId: 'wh_1',
    companyId: 'comp_1',
    appId: null,
    createdAtMs: NOW_MS - 90_000_000,
  };

  const attempt: Attempt = {
    id: 'att_2',
    number: 2,
    trigger: 'retry',
    outcome: 'http_5xx',
    statusCode: 503,
    response: null,
    responseHeaders: [],
    startedAtMs: 5_000,
    durationMs: 20,
  };

  const stuck: StuckDelivery = {
    ...REF,
    id: deliveryIdOf('msg_1', 'wh_1'),
    status: 'pending',
    reason: null,
    attemptCount: 2,
    attempts: [attempt],
    nextAttemptAtMs: 7_000,
    waiting: null,
    waitingSinceMs: null,
    updatedAtMs: 5_020,
  };

  describe('the record that moves a stuck delivery on', () => {
    test('asks for an attempt that is checked against what is recorded', () => {
      const remedy = {
        kind: 'attempt',
        cause: 'overdue_retry',
        attemptNumber: 3,
        dueAtMs: 7_000,
      } as const;
      const record = remedyRecord(TOPICS, stuck, remedy, NOW_MS);
      const { topic, key, value, headers } = record;
      expect([topic, key, headers]).toEqual(['due', 'wh_1', { 'turn-at': String(NOW_MS) }]);
      const due = { ...REF, attemptNumber: 3, trigger: 'retry', dueAtMs: 7_000 };
      expect(decodeRetryDue(value)).toMatchObject(due);
    });

    test('has the trigger of a retry for a first attempt too, so that new messages go before it', () => {
      const remedy = {
        kind: 'attempt',
        cause: 'lost_message',
        attemptNumber: 1,
        dueAtMs: 1,
      } as const;
      const { topic, value } = remedyRecord(TOPICS, stuck, remedy, NOW_MS);
      expect(topic).toBe('due');
      expect(decodeRetryDue(value)).toMatchObject({ attemptNumber: 1, trigger: 'retry' });
    });

    test('keeps why the last failure ended the delivery early', () => {
      const ended = { ...attempt, ending: 'gone' as const };
      const remedy = { kind: 'failure', cause: 'unended_schedule', attempt: ended } as const;
      const { value } = remedyRecord(TOPICS, stuck, remedy, NOW_MS);
      expect(decodeEndedAttempt(value)).toMatchObject({ attemptNumber: 2, ending: 'gone' });
    });

    test('tells of the last failure when nobody ended the schedule', () => {
      const remedy = { kind: 'failure', cause: 'unended_schedule', attempt } as const;
      const { topic, key, value } = remedyRecord(TOPICS, stuck, remedy, NOW_MS);
      expect([topic, key]).toEqual(['failed', 'wh_1']);
      expect(decodeEndedAttempt(value)).toMatchObject({
        ...REF,
        attemptNumber: 2,
        endedAtMs: 5_020,
        outcome: 'http_5xx',
        statusCode: 503,
      });
    });
  });
});
