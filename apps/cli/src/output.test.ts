import { expect, it } from '@jest/globals';
import { startApi } from '../../../test/support/cli/answering-api.ts';
import { runIn } from '../../../test/support/cli/printing-world.ts';
import { formatTables } from './output.ts';

it('formats a value as a table of its fields, and its lists as tables below', () => {
  const value = {
    id: 'wh_1',
    latencyMs: { p50: 84, p99: null },
    metadata: {},
    tags: ['a', 'b'],
    none: [],
    worst: [
      { url: 'https://a.example', failed: 12, of: { p50: 1 } },
      { url: 'https://b.example', failed: 3, headers: [{ key: 'X' }] },
    ],
  };
  expect(formatTables(value)).toEqual([
    'id             wh_1',
    'latencyMs.p50  84',
    'latencyMs.p99',
    'metadata',
    'tags           a, b',
    'none',
    '',
    'worst',
    '  url                failed  of.p50  headers',
    '  https://a.example      12       1',
    '  https://b.example       3          [{"key":"X"}]',
  ]);
});

it('cuts the lines of its tables at the width of the terminal, and no field', () => {
  const long = 'x'.repeat(50);
  expect(formatTables({ long, list: [{ long }] }, 20)).toEqual([
    `long  ${long}`,
    '',
    'list',
    '  long',
    `  ${'x'.repeat(18)}`,
  ]);
});

/** Runs a command against an API that answers with this. */
async function printed(command: string, data: object): Promise<string> {
  const { url, server } = await startApi(data);
  const { code, out } = await runIn(command.split(' '), { POSTHORN_URL: url });
  server.close();
  expect(code).toBe(0);
  return out;
}

it('prints an overview with the worst webhooks above the times that have attempts', async () => {
  const at = (hour: number): string => `2026-01-31T0${hour}:00:00.000Z`;
  const out = await printed('overview', {
    accepted: 5,
    latencyMs: { p50: 84, p99: 640 },
    series: [
      { at: at(1), delivered: 0, failed: 0 },
      { at: at(2), delivered: 3, failed: 2 },
    ],
    worst: [
      {
        webhookId: 'wh_1',
        url: 'https://example.com/',
        appId: null,
        successRatio: 0.6,
        failed: 2,
        reason: 'timeout',
        since: at(2),
      },
    ],
  });
  expect(out.split('\n')).toEqual([
    'accepted       5',
    'latencyMs.p50  84',
    'latencyMs.p99  640',
    '',
    'worst',
    '  webhook  success %  failed  reason   since                     url',
    '  wh_1            60       2  timeout  2026-01-31T02:00:00.000Z  https://example.com/',
    '',
    'series',
    '  at                        delivered  failed',
    '  2026-01-31T02:00:00.000Z          3       2',
    '',
  ]);
});

it('prints a delivery with a table of its attempts', async () => {
  const attempt = { id: 'att_1', createdAt: '2026-01-31T02:00:00.000Z', headers: [], number: 1 };
  const out = await printed('delivery get dlv_1', {
    id: 'dlv_1',
    attempts: [
      { ...attempt, outcome: 'http_5xx', statusCode: 503, durationMs: 84, response: 'busy' },
    ],
  });
  expect(out.split('\n')).toEqual([
    'id  dlv_1',
    '',
    'attempts',
    '  number  at                        outcome   status  ms  response',
    '       1  2026-01-31T02:00:00.000Z  http_5xx     503  84  busy',
    '',
  ]);
});

it('prints a message with a table of its deliveries', async () => {
  const out = await printed('message get msg_1', {
    id: 'msg_1',
    deliveryAttempt: { id: 'att_1' },
    deliveries: [{ id: 'dlv_1', webhookId: 'wh_1', status: 'pending', attemptCount: 1 }],
  });
  expect(out.split('\n')).toEqual([
    'id  msg_1',
    '',
    'deliveries',
    '  id     webhookId  status   attemptCount',
    '  dlv_1  wh_1       pending             1',
    '',
  ]);
});
