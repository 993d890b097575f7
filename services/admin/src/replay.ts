import { awaitsAttempt, type DeliveryState } from '@posthorn/domain/delivery/delivery.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import type { MarkedDelivery, Resend } from '@posthorn/domain/resend.ts';
import { readTopics } from '@posthorn/platform/kafka/connect.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import {
  createDeliveryStore,
  type DeliveryStore,
} from '@posthorn/platform/mongo/messages/deliveries.ts';
import {
  createResendMarks,
  freeOrphans,
  type ResendMarks,
} from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import { createResendStore, type ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import { isExhaustion } from '@posthorn/platform/records/dead-letters.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import {
  findLetter,
  type Letter,
  type Letters,
  lettersConfig,
  matchesFilter,
  openLetters,
  parseSelection,
  placeText,
  type Selection,
} from './letters.ts';
import {
  type Batch,
  createBatch,
  MOST_RECORDS,
  openLog,
  type ReplayOptions,
  type ReplayReport,
  runReplay,
} from './run-replay.ts';

const replayConfig = lettersConfig.extend(settings.mongodb);

/** Records are published to their own topic again; deliveries get one more attempt. */
export const WAYS = ['republished', 'resent'] as const;

/** Replays one letter, those that match, or all. */
export function replayDeadLetters(id: string | undefined, options: ReplayOptions): Promise<void> {
  const selection = parseSelection(id, options);
  const { place, filter } = selection;
  return runReplay({
    options,
    ways: WAYS,
    schema: replayConfig,
    event: {
      action: 'dead_letters.replayed',
      target: { kind: 'deadLetters', id: place && placeText(place) },
      fields: { filter: place ? null : JSON.stringify(filter) },
    },
    async open(config) {
      const letters = await openLetters(config);
      return (db, report, nowMs) => replaySelected(letters, db, selection, { report, nowMs });
    },
  });
}

async function replaySelected(
  letters: Letters,
  db: Database,
  { place, filter }: Selection,
  { report, nowMs }: { report: ReplayReport; nowMs: () => number },
): Promise<void> {
  const { kafka, prefix } = letters;
  const topics = new Set((await readTopics(kafka)).keys());
  const records = await openLog(kafka);
  const deliveries = createDeliveryStore(db);
  const replay = createReplay({
    report,
    republish: createRepublishLetters({ report, topics, deliveries, records }),
    resend: createResendLetters({
      report,
      resends: createResendStore(db),
      marks: createResendMarks(db),
      findWebhook: (companyId, _id) => documentsOf(db, 'webhooks', companyId).findOne({ _id }),
      newId: systemIds,
      nowMs,
    }),
  });
  try {
    if (place) await replay.add(await findLetter(letters, place));
    else {
      await letters.read(filter, async (letter) => {
        if (matchesFilter(letter, filter, prefix)) await replay.add(letter);
      });
    }
    await replay.flush();
  } finally {
    await records.close();
  }
}

interface ReplayDeps {
  report: ReplayReport;
  republish: (letters: readonly Letter[]) => Promise<void>;
  resend: (failures: readonly Failure[]) => Promise<void>;
}

/** Failed deliveries are held by their ids only. */
const MOST_FAILURES = { count: 10_000, bytes: Infinity };

/**
 * Replays letters: publishes unreadable records to their own topics again, and resends deliveries that
 * failed for good, as the API does.
 */
export function createReplay({ report, republish, resend }: ReplayDeps): Batch<Letter> {
  const records = createBatch<Letter>(MOST_RECORDS, ({ record }) => record.value.length, republish);
  const failures = createBatch<Failure>(MOST_FAILURES, () => 0, resend);

  async function addFailure({ id, content }: Letter): Promise<void> {
    if (!content) {
      report.skipped(id, 'unreadable_record');
      return;
    }
    const { companyId, webhookId, deliveryId } = content;
    await failures.add({ letterId: id, companyId, webhookId, deliveryId });
  }

  return {
    async add(letter) {
      report.matched();
      if (isRecord(letter)) await records.add(letter);
      else if (isFailure(letter)) await addFailure(letter);
      else report.skipped(letter.id, 'unknown_reason');
    },
    async flush() {
      await records.flush();
      await failures.flush();
    },
  };
}

/** True if the record was not processed. Its reader checks it again: a replay proves nothing. */
function isRecord({ reason }: Letter): boolean {
  return ['unreadable_record', 'unproven_record', 'company_mismatch'].includes(reason);
}

/** True if the letter is of a delivery in a final state. */
function isFailure({ reason }: Letter): boolean {
  return isExhaustion(reason) || reason === 'message_missing';
}

/** Why a letter was not replayed. */
type SkipReason =
  | 'cut'
  | 'unknown_source_topic'
  | 'source_topic_missing'
  | 'moved_on'
  | 'unreadable_record'
  | 'unknown_reason'
  | 'repeated'
  | 'not_stored'
  | 'delivered'
  | 'pending'
  | 'resend_running'
  | 'webhook_deleted'
  | 'webhook_disabled';

interface RepublishLettersDeps {
  report: ReplayReport;
  /** The topics that exist. */
  topics: ReadonlySet<string>;
  deliveries: Pick<DeliveryStore, 'statesOf'>;
  records: Pick<RecordLog, 'publish'>;
}

/** Publishes the records of letters unchanged to their own topics, where a fixed or later version can read them. */
export function createRepublishLetters(deps: RepublishLettersDeps) {
  const { report, deliveries, records } = deps;
  return async (letters: readonly Letter[]): Promise<void> => {
    const ids = letters.flatMap(({ content }) => content?.deliveryId ?? []);
    const states = await deliveries.statesOf(ids);
    const wanted = letters.filter((letter) => {
      const reason = skipReasonOf(deps, letter, states);
      if (reason) report.skipped(letter.id, reason);
      return reason === null;
    });
    if (!report.isDryRun) {
      await records.publish(
        wanted.map(({ source, record }) => ({ topic: source.topic, ...record })),
      );
    }
    for (const { id, source } of wanted) {
      report.replayed(
        'republished',
        id,
        (was) => `record ${was} published again to ${source.topic}`,
      );
    }
  };
}

function skipReasonOf(
  { topics }: RepublishLettersDeps,
  { cutFromBytes, hasKnownSource, source, content }: Letter,
  states: ReadonlyMap<string, DeliveryState>,
): SkipReason | null {
  if (cutFromBytes !== null) return 'cut';
  if (!hasKnownSource) return 'unknown_source_topic';
  if (!topics.has(source.topic)) return 'source_topic_missing';
  // Nothing is known about an unreadable record. One that disables a webhook is about no further attempt, and repeating it
  // changes nothing.
  if (!content || content.nextAttemptNumber === null) return null;
  // A record that is readable now may have been replayed before: an attempt is not made twice.
  const isDue = awaitsAttempt(states.get(content.deliveryId), content.nextAttemptNumber);
  return isDue ? null : 'moved_on';
}

/** A delivery that failed for good, and its dead letter. */
export interface Failure {
  letterId: string;
  companyId: string;
  webhookId: string;
  deliveryId: string;
}

interface ResendLettersDeps {
  report: ReplayReport;
  resends: Pick<ResendStore, 'insert' | 'remove' | 'findOne'>;
  marks: Pick<ResendMarks, 'ask' | 'read' | 'free'>;
  /** Null when the webhook was deleted. */
  findWebhook: (
    companyId: string,
    webhookId: string,
  ) => Promise<{ disabled: boolean; rateLimitPerSecond: number | null } | null>;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

/** Failures of one webhook. */
interface Page {
  companyId: string;
  webhookId: string;
  failures: readonly Failure[];
}

/** The retry service sends as many deliveries of a resend at once, or two seconds' worth under a rate limit. */
const PAGE_SIZE = 500;

/**
 * Stores resends that name the deliveries, and marks the deliveries. The retry service sends them page by page
 * within the limits of each endpoint. A delivery whose state has changed since its letter is skipped.
 */
export function createResendLetters(deps: ResendLettersDeps) {
  return async (failures: readonly Failure[]): Promise<void> => {
    const byWebhook = Map.groupBy(
      withoutRepeats(deps, failures),
      ({ companyId, webhookId }) => `${companyId}/${webhookId}`,
    );
    for (const group of byWebhook.values()) await resendOfWebhook(deps, group);
  };
}

/** A crash may have written two letters of one delivery. */
function withoutRepeats(deps: ResendLettersDeps, failures: readonly Failure[]): Failure[] {
  const groups = [...Map.groupBy(failures, ({ deliveryId }) => deliveryId).values()];
  for (const group of groups) skipAll(deps, group.slice(1), 'repeated');
  return groups.map((group) => requiredAt(group, 0, 'failure of the delivery'));
}

async function resendOfWebhook(
  deps: ResendLettersDeps,
  failures: readonly Failure[],
): Promise<void> {
  const { companyId, webhookId } = requiredAt(failures, 0, 'failure of the webhook');
  const webhook = await deps.findWebhook(companyId, webhookId);
  if (!webhook || webhook.disabled) {
    skipAll(deps, failures, webhook ? 'webhook_disabled' : 'webhook_deleted');
    return;
  }
  const perSecond = webhook.rateLimitPerSecond;
  const size = perSecond === null ? PAGE_SIZE : Math.min(PAGE_SIZE, perSecond * 2);
  for (let from = 0; from < failures.length; from += size) {
    await resendPage(deps, { companyId, webhookId, failures: failures.slice(from, from + size) });
  }
}

async function resendPage(deps: ResendLettersDeps, page: Page): Promise<void> {
  const { report, marks } = deps;
  const { companyId, failures } = page;
  const ids = failures.map(({ deliveryId }) => deliveryId);
  // A resend that ended may have left its marks.
  if (!report.isDryRun) await freeOrphans(deps, await marks.read(companyId, ids));
  const found = new Map((await marks.read(companyId, ids)).map((each) => [each.id, each]));
  const resendable = failures.filter(({ letterId, deliveryId }) => {
    const reason = whyNotResent(found.get(deliveryId));
    if (reason) report.skipped(letterId, reason);
    return reason === null;
  });
  if (resendable.length === 0) return;
  if (report.isDryRun) {
    for (const each of resendable) reportResent(report, each, null);
  } else {
    await storeResend(deps, { ...page, failures: resendable });
  }
}

function whyNotResent(delivery: MarkedDelivery | undefined): SkipReason | null {
  if (!delivery) return 'not_stored';
  const { status, mark } = delivery;
  if (status === 'delivered' || status === 'pending') return status;
  return mark?.state === 'asked' ? 'resend_running' : null;
}

async function storeResend(deps: ResendLettersDeps, page: Page): Promise<void> {
  const { report, resends, marks } = deps;
  const { companyId, failures } = page;
  const resend = newResend(deps, page);
  if (!(await resends.insert(resend))) {
    skipAll(deps, failures, 'resend_running');
    return;
  }
  // Marked at once, so that another letter of the same delivery is skipped.
  await marks.ask(resend);
  const found = await marks.read(companyId, resend.page);
  const marked = new Set(
    found.filter(({ mark }) => mark?.resendId === resend.id).map(({ id }) => id),
  );
  if (marked.size === 0) {
    await resends.remove(resend);
    await marks.free(companyId, resend.id, resend.page);
  }
  for (const failure of failures) {
    if (marked.has(failure.deliveryId)) reportResent(report, failure, resend.id);
    else report.skipped(failure.letterId, 'resend_running');
  }
}

/** `resendId` is null in a dry run. */
function reportResent(
  report: ReplayReport,
  { letterId, deliveryId }: Failure,
  resendId: string | null,
): void {
  const by = resendId === null ? '' : ` by ${resendId}`;
  report.replayed(
    'resent',
    letterId,
    (was) => `one more attempt ${was} asked for${by}: ${deliveryId}`,
  );
}

/** Returns a resend with one page: its span ends with the last delivery of the page. */
function newResend(
  { newId, nowMs }: ResendLettersDeps,
  { companyId, webhookId, failures }: Page,
): Resend {
  const page = failures.map(({ deliveryId }) => deliveryId).sort();
  const last = requiredAt(page, page.length - 1, 'delivery of the page');
  const atMs = nowMs();
  return {
    id: newId('rsnd'),
    kind: 'resend',
    companyId,
    webhookId,
    appId: null,
    partOf: null,
    outcome: null,
    filter: null,
    eventTypes: [],
    afterId: page.length === 1 ? last : '',
    beforeId: last,
    page,
    status: 'running',
    progress: null,
    scannedTo: '',
    dueAtMs: atMs,
    abortAskedAtMs: null,
    total: page.length,
    succeeded: 0,
    failed: 0,
    createdAtMs: atMs,
    updatedAtMs: atMs,
  };
}

function skipAll(
  { report }: ResendLettersDeps,
  failures: readonly Failure[],
  reason: SkipReason,
): void {
  for (const { letterId } of failures) report.skipped(letterId, reason);
}
