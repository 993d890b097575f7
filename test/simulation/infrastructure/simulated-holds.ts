import { isFinal } from '@posthorn/domain/delivery/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { DeliveryDocument } from '@posthorn/platform/mongo/documents.ts';
import type { WaitingWebhook } from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type { HoldNotes, HoldPlace } from '@posthorn/platform/mongo/webhooks/holds.ts';
import {
  createMemoryHoldNotes,
  type MemoryHoldNotes,
} from '../../support/memory/memory-hold-notes.ts';
import type { SimulatedMongo } from './simulated-mongo.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** What the stores need of a process. */
type Requester = Pick<SimulatedProcess, 'request'>;

/** The notes of holds, whose statements the simulated MongoDB does not have, and what a sweep finds by its index. */
export interface SimulatedHolds {
  /** Puts a webhook on hold, or ends that. */
  set: (webhookId: string, isHeld: boolean, atMs: number) => void;
  /** Writes the note of a webhook that was disabled, enabled or deleted, where a gateway does (holds.ts). */
  onChanged: (webhookId: string, atMs: number) => void;
  /** Whether all deliveries of accepted messages are final, and all others that are stored. */
  isOver: (accepted: readonly string[]) => boolean;
  connectedTo: (process: Requester) => {
    notes: HoldNotes;
    allWebhooks: () => AsyncIterable<WaitingWebhook>;
    /** Whether the webhook is on hold, and not disabled. */
    isHeld: (webhookId: string) => Promise<boolean>;
  };
}

const COMPANY_ID = 'comp_a';
const HOLD = { sinceMs: 0, untilMs: null, reason: null, by: 'key_1' };

/** `isBlocked`: whether a pending delivery may wait for ever. */
export function createSimulatedHolds(
  mongo: SimulatedMongo,
  isBlocked: (deliveryId: string) => boolean,
): SimulatedHolds {
  const notes = createMemoryHoldNotes();
  const webhooks = mongo.collection('webhooks');
  const touch = (place: HoldPlace, atMs: number, dueAtMs: number): void => {
    notes.touch(place, { atMs, dueAtMs });
  };
  const deliveries = (): DeliveryDocument[] =>
    // Simulated collections are untyped. Only the delivery store writes to this one.
    [...mongo.collection('deliveries').values()] as unknown as DeliveryDocument[];
  return {
    set(webhookId, isHeld, atMs) {
      const webhook = webhooks.get(webhookId);
      if (webhook) webhooks.set(webhookId, { ...webhook, held: isHeld ? HOLD : null });
      touch({ id: webhookId, companyId: COMPANY_ID, kind: 'webhook' }, atMs, atMs);
    },
    onChanged(webhookId, atMs) {
      if (!webhooks.get(webhookId)?.held && !notes.all.has(webhookId)) return;
      touch({ id: webhookId, companyId: COMPANY_ID, kind: 'webhook' }, atMs, atMs);
    },
    isOver(accepted) {
      const known = new Map(deliveries().map(({ _id, status }) => [_id, status]));
      const isDone = (id: string): boolean => isFinal(known.get(id) ?? 'pending') || isBlocked(id);
      if (![...known.keys()].every(isDone)) return false;
      return accepted.every((id) => {
        return attemptedTargets(mongo, id).every((to) => isDone(deliveryIdOf(id, to)));
      });
    },
    connectedTo: (process) => ({
      notes: notesOf(process, notes, touch),
      async *allWebhooks() {
        const found = await request(process, 'list held webhooks', () =>
          deliveries().filter(({ status, waiting }) => status === 'pending' && waiting === 'hold'),
        );
        const ids = Map.groupBy(found, ({ webhookId }) => webhookId);
        for (const [webhookId, ofWebhook] of ids) {
          const [firstId = ''] = ofWebhook.map(({ _id }) => _id).sort();
          yield { companyId: COMPANY_ID, webhookId, firstId };
        }
      },
      isHeld: (webhookId) =>
        request(process, `read the hold of ${webhookId}`, () => {
          const webhook = webhooks.get(webhookId);
          return webhook !== undefined && Boolean(webhook.held) && webhook.disabled !== true;
        }),
    }),
  };
}

/**
 * The targets to which attempts are made. The others were disabled at acceptance: the sweep of stuck deliveries, which is not
 * simulated, records those whose cancellation the gateway could not store.
 */
export function attemptedTargets(mongo: SimulatedMongo, messageId: string): string[] {
  const message = mongo.collection('messages').get(messageId);
  const disabled = new Set((message?.disabledTargets ?? []) as string[]);
  return ((message?.targets ?? []) as string[]).filter((target) => !disabled.has(target));
}

function notesOf(
  process: Requester,
  notes: MemoryHoldNotes,
  touch: (place: HoldPlace, atMs: number, dueAtMs: number) => void,
): HoldNotes {
  return {
    touch: (place, { atMs, dueAtMs }) =>
      request(process, `touch the note of ${place.id}`, () => {
        touch(place, atMs, dueAtMs);
      }),
    expand: (note, ids, nowMs) =>
      request(process, `expand the note of ${note.id}`, () => notes.expand(note, ids, nowMs)),
    claim: (claim) => request(process, 'claim a note', () => notes.claim(claim)),
    renew: (note, untilMs) =>
      request(process, `renew the claim of ${note.id}`, () => notes.renew(note, untilMs)),
    putBack: (note, dueAtMs) =>
      request(process, `put the note of ${note.id} back`, () => notes.putBack(note, dueAtMs)),
    noteOpenEnded: (note) =>
      request(process, `note the hold of ${note.id}`, () => {
        notes.noteOpenEnded(note);
      }),
    noteEnd: (note, atMs) =>
      request(process, `note the end of ${note.id}`, () => {
        notes.noteEnd(note, atMs);
      }),
    remove: (note) => request(process, `remove the note of ${note.id}`, () => notes.remove(note)),
    rateOf: (id) => request(process, `read the rate of ${id}`, () => notes.rateOf(id)),
    hasAny: (ids) => request(process, 'look for notes', () => ids.some((id) => notes.all.has(id))),
    oldestMs: () => Promise.resolve(null),
  };
}

function request<T>(process: Requester, what: string, effect: () => T): Promise<T> {
  const noResponse = (): Error => new Error('no response');
  let result: T;
  return process.request({
    what,
    effects: [() => (result = effect())],
    respond: () => result,
    noResponse,
  });
}
