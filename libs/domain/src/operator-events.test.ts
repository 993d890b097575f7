import { describe, expect, test } from '@jest/globals';
import {
  decodeOperatorEvent,
  encodeOperatorEvent,
  type FailingRules,
  failingSinceMs,
  hourOfAttempts,
  type HourOfAttempts,
  lookFromMs,
  nextFailingStep,
  type OperatorEvent,
  operatorPayloadOf,
  slackPayloadOf,
  teamsPayloadOf,
} from './operator-events.ts';
import { UnreadableRecordError } from './records/record-value.ts';
import { HOUR_MS } from './stats.ts';

const event: OperatorEvent = {
  id: 'oev_1',
  type: 'circuit.opened',
  companyId: 'comp_a',
  webhookId: 'wh_1',
  detail: 'the circuit is open for 30000 ms',
  count: 3,
  firstAtMs: Date.UTC(2026, 10, 24, 6),
  lastAtMs: Date.UTC(2026, 10, 24, 7),
};

test('an event is read as it was written', () => {
  expect(decodeOperatorEvent(encodeOperatorEvent(event))).toEqual(event);
});

test.each(['{', '[]', '{"version":2}', '{"version":1,"type":"other"}'])(
  '%s is no event',
  (text) => {
    expect(() => decodeOperatorEvent(Buffer.from(text))).toThrow(UnreadableRecordError);
  },
);

test('the operator gets its type, its time and what happened to whom', () => {
  expect(JSON.parse(operatorPayloadOf(event).toString())).toEqual({
    type: 'circuit.opened',
    timestamp: '2026-11-24T07:00:00.000Z',
    data: {
      companyId: 'comp_a',
      webhookId: 'wh_1',
      detail: 'the circuit is open for 30000 ms',
      count: 3,
      firstAt: '2026-11-24T06:00:00.000Z',
      lastAt: '2026-11-24T07:00:00.000Z',
    },
  });
});

describe('in Slack an event', () => {
  const textOf = (...args: Parameters<typeof slackPayloadOf>): string =>
    (JSON.parse(slackPayloadOf(...args).toString()) as { text: string }).text;

  test('is a text of its title, its detail and its facts, with a link to its webhook', () => {
    expect(textOf(event, 'https://hooks.example.com/posthorn').split('\n')).toEqual([
      'Most attempts to an endpoint fail',
      'the circuit is open for 30000 ms',
      'Type: circuit.opened',
      'Company: comp_a',
      'Webhook: wh_1',
      'Count: 3',
      'First: 2026-11-24T06:00:00.000Z',
      'Last: 2026-11-24T07:00:00.000Z',
      '<https://hooks.example.com/posthorn/dashboard/webhooks/wh_1|Open in the dashboard>',
    ]);
  });

  test('mentions nobody and contains no link of its detail', () => {
    const detail = '<!channel> & <https://evil.example|text>';
    expect(textOf({ ...event, detail }, null)).toContain(
      '\n&lt;!channel&gt; &amp; &lt;https://evil.example|text&gt;\n',
    );
  });

  test('has no line of a webhook that is not known, and no link without PUBLIC_URL', () => {
    const unknown = { ...event, companyId: null, webhookId: null };
    expect(textOf(unknown, null)).not.toMatch(/Company|Webhook|dashboard/);
    expect(textOf(unknown, 'https://a.example')).toContain('<https://a.example/dashboard/|');
  });
});

describe('in Teams an event', () => {
  const messageOf = (...args: Parameters<typeof teamsPayloadOf>): unknown =>
    JSON.parse(teamsPayloadOf(...args).toString());

  test('is a message with one Adaptive Card 1.4 that opens its webhook', () => {
    const detail = '[a link](https://evil.example)';
    expect(messageOf({ ...event, detail }, 'https://hooks.example.com')).toEqual({
      type: 'message',
      attachments: [
        {
          contentType: 'application/vnd.microsoft.card.adaptive',
          contentUrl: null,
          content: {
            $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
            type: 'AdaptiveCard',
            version: '1.4',
            body: [
              {
                type: 'TextBlock',
                text: 'Most attempts to an endpoint fail',
                weight: 'Bolder',
                wrap: true,
              },
              { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: detail }] },
              {
                type: 'FactSet',
                facts: [
                  { title: 'Type', value: 'circuit.opened' },
                  { title: 'Company', value: 'comp_a' },
                  { title: 'Webhook', value: 'wh_1' },
                  { title: 'Count', value: '3' },
                  { title: 'First', value: '2026-11-24T06:00:00.000Z' },
                  { title: 'Last', value: '2026-11-24T07:00:00.000Z' },
                ],
              },
            ],
            actions: [
              {
                type: 'Action.OpenUrl',
                title: 'Open in the dashboard',
                url: 'https://hooks.example.com/dashboard/webhooks/wh_1',
              },
            ],
          },
        },
      ],
    });
  });

  test('has no action without PUBLIC_URL', () => {
    expect(JSON.stringify(messageOf(event, null))).not.toContain('actions');
  });
});

const hour = (n: number): number => n * HOUR_MS;
const failedIn = (...hours: number[]): HourOfAttempts[] =>
  hours.map((n) => ({ atMs: hour(n), succeeded: 0, failed: 3 }));
const succeededIn = (n: number): HourOfAttempts => ({ atMs: hour(n), succeeded: 1, failed: 9 });

describe('the attempts of an hour', () => {
  test('are failures unless they succeeded, or we ended them', () => {
    const outcomes = { success: 2, timeout: 3, http_5xx: 1, aborted: 4 };
    expect(hourOfAttempts(hour(1), { outcomes })).toEqual({
      atMs: hour(1),
      succeeded: 2,
      failed: 4,
    });
  });
});

describe('an endpoint', () => {
  const since = (hours: HourOfAttempts[], toHour: number, toldHour: number | null = null) => {
    const told = toldHour === null ? null : { sinceMs: hour(toldHour), disableAtMs: null };
    const sinceMs = failingSinceMs(hours, { told, toMs: hour(toHour) });
    return sinceMs === null ? null : sinceMs / HOUR_MS;
  };

  test('fails since the first failure after its last success', () => {
    expect(since(failedIn(1, 5, 14, 25), 26)).toBe(1);
    expect(since([...failedIn(1), succeededIn(2), ...failedIn(3, 14, 25)], 26)).toBe(3);
    expect(since([...failedIn(1, 12, 24), succeededIn(25)], 26)).toBeNull();
  });

  test('does not fail when there are no statistics, or none any more', () => {
    expect(since([], 26)).toBeNull();
    expect(since([], 26, 1)).toBeNull();
    expect(since(failedIn(1, 5, 12), 26)).toBeNull();
    expect(since(failedIn(1, 5, 12), 26, 1)).toBeNull();
  });

  test('fails only since the end of a time without attempts', () => {
    expect(since(failedIn(1, 15, 25), 26)).toBe(15);
  });

  test('fails since the time that was told, also when the first hours have expired', () => {
    expect(since(failedIn(58, 70), 71, 1)).toBe(1);
    expect(since([succeededIn(60), ...failedIn(61, 70)], 71, 1)).toBe(61);
  });

  test('fails only since the end of a hole in the statistics', () => {
    expect(since(failedIn(60, 70), 71, 1)).toBe(60);
    expect(since(failedIn(1, 2, 58, 70), 71, 1)).toBe(58);
  });

  test('is looked at since what was told, but never before its last change or eight days ago', () => {
    const from = (toldHour: number | null, changedHour: number, toHour: number): number => {
      const told = toldHour === null ? null : { sinceMs: hour(toldHour), disableAtMs: null };
      return lookFromMs({ told, changedAtMs: hour(changedHour) + 5 }, hour(toHour)) / HOUR_MS;
    };
    expect(from(null, 0, 100)).toBe(63);
    expect(from(20, 0, 100)).toBe(20);
    expect(from(null, 80, 100)).toBe(81);
    expect(from(20, 0, 1_000)).toBe(808);
  });
});

describe('an endpoint that fails', () => {
  const rules: FailingRules = { autoDisableAfterMs: hour(72), doOthersSucceed: true, toMs: 0 };
  const told = { sinceMs: 0, disableAtMs: null };

  test('is told once, after 24 hours', () => {
    expect(nextFailingStep(0, null, { ...rules, toMs: hour(24) - 1 }).kind).toBe('nothing');
    expect(nextFailingStep(0, null, { ...rules, toMs: hour(24) }).kind).toBe('tell');
    expect(nextFailingStep(0, told, { ...rules, toMs: hour(25) }).kind).toBe('nothing');
  });

  test('is told again when it fails again after a success', () => {
    expect(nextFailingStep(hour(30), told, { ...rules, toMs: hour(54) }).kind).toBe('tell');
  });

  test('is disabled by a setting only, a day after the warning', () => {
    const never = { ...rules, autoDisableAfterMs: null, toMs: hour(9_000) };
    expect(nextFailingStep(0, told, never).kind).toBe('nothing');
    expect(nextFailingStep(0, told, { ...rules, toMs: hour(47) }).kind).toBe('nothing');
    const warning = { kind: 'warn', disableAtMs: hour(72) };
    expect(nextFailingStep(0, told, { ...rules, toMs: hour(48) })).toEqual(warning);
    const warned = { sinceMs: 0, disableAtMs: hour(72) };
    expect(nextFailingStep(0, warned, { ...rules, toMs: hour(71) }).kind).toBe('nothing');
    expect(nextFailingStep(0, warned, { ...rules, toMs: hour(72) }).kind).toBe('disable');
  });

  test('is warned first when the setting comes after its time, and waits when the setting grows', () => {
    const late = { ...rules, toMs: hour(200) };
    expect(nextFailingStep(0, told, late)).toEqual({ kind: 'warn', disableAtMs: hour(224) });
    const warned = { sinceMs: 0, disableAtMs: hour(72) };
    const longer = { ...rules, autoDisableAfterMs: hour(100), toMs: hour(99) };
    expect(nextFailingStep(0, warned, longer).kind).toBe('nothing');
  });

  test('is neither warned nor disabled while no other endpoint succeeds', () => {
    const alone = { ...rules, doOthersSucceed: false, toMs: hour(100) };
    expect(nextFailingStep(0, null, alone).kind).toBe('tell');
    expect(nextFailingStep(0, told, alone).kind).toBe('nothing');
    const warned = { sinceMs: 0, disableAtMs: hour(72) };
    expect(nextFailingStep(0, warned, alone).kind).toBe('nothing');
  });
});
