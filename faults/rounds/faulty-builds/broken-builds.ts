import { EARLY, INVERTED, LOST_IN_ORDER } from '../../audit/order.ts';
import { OUTDATED } from '../frozen-changes/probes.ts';
import type { Change } from '../../stack/source-copy.ts';

/** A build that breaks one promise, and what the audit must report. */
export interface BrokenBuild {
  name: string;
  /** What is wrong with it, in words. */
  summary: string;
  changes: readonly Change[];
  /** The audit must report at least one of these findings. */
  mustFind: readonly string[];
  /** The round that shows it. */
  shownBy:
    | 'calm'
    | 'calm, slow endpoints'
    | 'dispatcher killed'
    | 'gateway killed'
    | 'unpublished'
    | 'changes frozen'
    | InOrder;
}

/** Messages with ordering keys are sent as well: without a fault, or until both dispatchers are killed. */
export type InOrder = 'in order' | 'in order, dispatchers killed';

const HANDLE =
  "await this.#deps.keepTrying('handle a record', () => handle(record, isOurs), logFields);";

/** The production code has no switch for any of these: the changes are made in a copy of the sources. */
export const BROKEN_BUILDS: readonly BrokenBuild[] = [
  {
    name: 'early-commit',
    summary: 'offsets are committed before the attempt is made',
    changes: [
      {
        file: 'libs/platform/src/kafka/consumer/batch-handler.ts',
        find: `${HANDLE}\n      owned.offsets.finish(offset);`,
        replace: `owned.offsets.finish(offset);\n      ${HANDLE}`,
      },
    ],
    // An endpoint that had the request when the dispatcher was killed has received it, and nothing records that.
    mustFind: ['lost', 'the API and the receiver disagree'],
    shownBy: 'dispatcher killed',
  },
  {
    name: 'early-answer',
    summary: '202 is sent before the message is stored',
    changes: [
      {
        file: 'services/gateway/src/accept/accept-message.ts',
        find: 'await deps.outbox.store(messages);',
        replace:
          "messages.map(() => 'stored' as const);\n  setTimeout(() => void deps.outbox.store(messages), 1_500);",
      },
    ],
    mustFind: ['lost'],
    shownBy: 'gateway killed',
  },
  {
    name: 'early-release',
    summary: 'parked retries are released half a second before they are due',
    changes: [
      {
        file: 'services/retry/src/release-parked.ts',
        find: 'const leftMs = Math.min(dueAtMs - nowMs()',
        replace: 'const leftMs = Math.min(dueAtMs - 500 - nowMs()',
      },
    ],
    mustFind: ['early retry'],
    shownBy: 'calm',
  },
  {
    name: 'dropped-failure',
    summary: 'the first failure of each batch is recorded and not published',
    changes: [
      {
        file: 'services/dispatcher/src/settle.ts',
        find: '() => deps.records.publish(failures),',
        replace: '() => deps.records.publish(failures.slice(1)),',
      },
    ],
    mustFind: ['lost'],
    shownBy: 'calm',
  },
  {
    name: 'no-signature',
    summary: 'requests are not signed',
    changes: [
      {
        file: 'libs/domain/src/request/delivery-headers.ts',
        find: 'const newest = sign(standard, parts);',
        replace: "const newest = 'v1,' + (standard ? '' : '');",
      },
    ],
    mustFind: ['wrong signature'],
    shownBy: 'calm',
  },
  {
    name: 'no-sweep',
    summary: 'the sweep never takes over what a dead gateway did not publish',
    changes: [
      {
        file: 'services/retry/src/sweep/when-taken-over.ts',
        find: 'const SILENT_MS = 10_000;',
        replace: 'const SILENT_MS = 10_000_000;',
      },
    ],
    mustFind: ['lost'],
    shownBy: 'unpublished',
  },
  {
    name: 'early-sweep',
    summary: 'the sweep does not wait until a gateway is silent, and no attempt is looked up',
    changes: [
      {
        file: 'services/dispatcher/src/attempt/prevent-double-send.ts',
        find: 'if (!isLookedUp) return',
        replace: 'if (!isLookedUp || due.attemptNumber > 0) return',
      },
      {
        file: 'services/retry/src/sweep/when-taken-over.ts',
        find: 'const isSilent = silentMs > SILENT_MS;',
        replace: 'const isSilent = silentMs > -SILENT_MS;',
      },
      {
        file: 'services/retry/src/sweep/when-taken-over.ts',
        find: 'const WATCHED_MS = 4_000;',
        replace: 'const WATCHED_MS = 0;',
      },
    ],
    mustFind: ['unexplained duplicate', 'lost'],
    shownBy: 'calm, slow endpoints',
  },
  {
    name: 'no-sequence',
    summary: 'a delivery that leaves memory stores no head of its ordering key',
    changes: [
      {
        file: 'services/dispatcher/src/order/sequence-in-memory.ts',
        find: 'await this.#parts.store.setHead({ ...this.#place, head: headOf(entry) });',
        replace: '',
      },
    ],
    mustFind: [EARLY, INVERTED],
    shownBy: 'in order',
  },
  {
    name: 'endless-cache',
    summary: 'what was followed once counts as followed for ever',
    changes: [
      {
        file: 'libs/platform/src/mongo/follow-changes.ts',
        find: 'return this.#deps.monotonicMs() - this.#confirmedMs <= CURRENT_WITHIN_MS;',
        replace: 'return this.#confirmedMs > -Infinity;',
      },
    ],
    mustFind: [OUTDATED],
    shownBy: 'changes frozen',
  },
  {
    name: 'early-end',
    summary: 'the offset of a head is committed before the next ones are published',
    changes: [
      {
        file: 'services/dispatcher/src/order/sequence-in-memory.ts',
        find: 'this.#remove([entry]);\n    await this.#work();',
        replace:
          'this.#remove([entry]);\n    setTimeout(() => {\n      this.workOn();\n    }, 3_000);',
      },
    ],
    mustFind: [LOST_IN_ORDER],
    shownBy: 'in order, dispatchers killed',
  },
];
