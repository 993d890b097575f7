import { beforeEach, describe, expect, test } from '@jest/globals';
import type { OperatorEvent } from '@posthorn/domain/operator-events.ts';
import { IncidentReports, MAX_REMEMBERED } from './operator-incidents.ts';

const HOUR_MS = 3_600_000;

let nowMs: number;
let published: OperatorEvent[];
let isKafkaAway: boolean;
let dropped: number;
let reports: IncidentReports;

beforeEach(() => {
  [nowMs, published, isKafkaAway, dropped] = [0, [], false, 0];
  let ids = 0;
  reports = new IncidentReports({
    publish: (events) => {
      if (isKafkaAway) return Promise.reject(new Error('Kafka is away'));
      published.push(...events);
      return Promise.resolve();
    },
    newId: () => `oev_${(ids += 1)}`,
    nowMs: () => nowMs,
    onDropped: () => (dropped += 1),
  });
});

const exhausted = (webhookId: string, detail = 'timeout'): void => {
  reports.report({ type: 'delivery.exhausted', companyId: 'comp_a', webhookId, detail });
};

const told = () => published.map(({ webhookId, count, detail }) => [webhookId, count, detail]);

describe('incidents', () => {
  test('are told at once for the first of a webhook, and together an hour later', async () => {
    exhausted('wh_1');
    exhausted('wh_2');
    await reports.tick();
    for (let n = 0; n < 500; n += 1) exhausted('wh_1', `status ${n}`);
    nowMs = HOUR_MS - 1;
    await reports.tick();
    expect(told()).toEqual([
      ['wh_1', 1, 'timeout'],
      ['wh_2', 1, 'timeout'],
    ]);
    nowMs = HOUR_MS;
    await reports.tick();
    expect(told()[2]).toEqual(['wh_1', 500, 'status 499']);
  });

  test('of two types at one webhook are two events', async () => {
    const circuit = { companyId: 'comp_a', webhookId: 'wh_1', detail: '' };
    reports.report({ ...circuit, type: 'circuit.opened' });
    reports.report({ ...circuit, type: 'circuit.closed' });
    await reports.tick();
    expect(published.map(({ type }) => type)).toEqual(['circuit.opened', 'circuit.closed']);
  });

  test('are told once Kafka is back, under the same id', async () => {
    exhausted('wh_1');
    isKafkaAway = true;
    await expect(reports.tick()).rejects.toThrow('Kafka is away');
    exhausted('wh_1');
    isKafkaAway = false;
    await reports.tick();
    await reports.tick();
    expect(published).toMatchObject([{ id: 'oev_1', count: 2 }]);
  });

  test('are forgotten an hour after their last event', async () => {
    exhausted('wh_1');
    await reports.tick();
    expect(reports.size()).toBe(1);
    nowMs = HOUR_MS;
    await reports.tick();
    expect(reports.size()).toBe(0);
    exhausted('wh_1');
    await reports.tick();
    expect(told()).toHaveLength(2);
  });

  test('of more webhooks than are remembered are dropped and counted', () => {
    for (let n = 0; n < MAX_REMEMBERED + 3; n += 1) exhausted(`wh_${n}`);
    expect([reports.size(), dropped]).toEqual([MAX_REMEMBERED, 3]);
  });

  test('of the last hour are told when the process stops', async () => {
    exhausted('wh_1');
    await reports.tick();
    exhausted('wh_1');
    await reports.flush();
    expect(told()).toHaveLength(2);
  });
});
