import { describe, expect, it } from '@jest/globals';
import {
  findingsOf,
  type Outcome,
  OUTDATED,
  type Probe,
  type ProbedChange,
  unusedForMs,
} from './probes.ts';

const CHANGED_AT_MS = 10_000;
const PROMISED_AT_MS = CHANGED_AT_MS + 2_000;
const OLD: Outcome = { status: 202, endpoints: ['a'] };
const NEW: Outcome = { status: 202, endpoints: ['b'] };
const GONE: Outcome = { status: 404, endpoints: [] };

/** Messages that had these outcomes, each with the time at which it was sent to gateway 1. */
function open(...sent: readonly (readonly [number, Outcome])[]) {
  const got = new Map<string, readonly string[]>();
  const probes = sent.map(([sentAtMs, { status, endpoints }], index): Probe => {
    const messageId = status === 202 ? `msg_${index}` : null;
    if (messageId !== null) got.set(messageId, endpoints);
    return { sentAtMs, gateway: 1, status, messageId };
  });
  const change: ProbedChange = {
    name: 'a URL',
    before: OLD,
    after: NEW,
    beganAtMs: CHANGED_AT_MS - 20,
    changedAtMs: CHANGED_AT_MS,
    probes,
  };
  const endpointsOf = (id: string): readonly string[] => got.get(id) ?? [];
  const whats = (changed: Partial<ProbedChange> = {}): string[] =>
    findingsOf([{ ...change, ...changed }], endpointsOf).map(({ what }) => what);
  return { whats, unusedForMs: () => unusedForMs([change], endpointsOf) };
}

const WARM = [CHANGED_AT_MS - 500, OLD] as const;
const SHOWN = [PROMISED_AT_MS, NEW] as const;

describe('the messages around a change', () => {
  it('may go by either configuration for two seconds', () => {
    const { whats, unusedForMs: ageMs } = open(
      WARM,
      [CHANGED_AT_MS - 10, NEW],
      [PROMISED_AT_MS - 1, OLD],
      SHOWN,
    );
    expect(whats()).toEqual([]);
    expect(ageMs()).toBe(1_999);
  });

  it('go by the new one from then on', () => {
    expect(open(WARM, SHOWN, [PROMISED_AT_MS, OLD]).whats()).toEqual([OUTDATED]);
    expect(open(WARM, SHOWN, [PROMISED_AT_MS, GONE]).whats({ meanwhile: [GONE] })).toEqual([
      OUTDATED,
    ]);
  });

  it.each<[string, Outcome]>([
    ['is lost', { status: 202, endpoints: [] }],
    ['comes twice', { status: 202, endpoints: ['a', 'a'] }],
    ['goes by both', { status: 202, endpoints: ['a', 'b'] }],
    ['is refused', GONE],
  ])('are wrong when one %s', (_how, outcome) => {
    const { whats } = open(WARM, [CHANGED_AT_MS + 100, outcome], SHOWN);
    expect(whats()).toEqual(['a message that went by no configuration']);
    expect(whats({ meanwhile: [outcome] })).toEqual([]);
  });

  it.each([
    ['nothing was sent', []],
    ['none went by the old configuration before', [[CHANGED_AT_MS - 500, NEW], SHOWN]],
    ['none was sent two seconds later', [WARM]],
  ] as const)('show nothing when %s', (_why, sent) => {
    expect(open(...sent).whats()).toEqual(['a change that shows nothing']);
  });
});
