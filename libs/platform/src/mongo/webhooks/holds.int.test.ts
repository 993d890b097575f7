import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import type { AppDocument, WebhookDocument } from '../documents.ts';
import { createHoldNotes, createHoldStates } from './holds.ts';

let scratch: ScratchDatabase;

beforeAll(async () => {
  scratch = await openScratchDatabase();
}, 60_000);

beforeEach(async () => {
  for (const name of ['holdNotes', 'webhooks', 'apps', 'companies'] as const) {
    await collection(scratch.db, name).deleteMany({});
  }
});

afterAll(() => scratch.drop(), 60_000);

const PLACE = { id: 'wh_1', companyId: 'comp_a', kind: 'webhook' } as const;
const claimAt = (nowMs: number, claim = 'c1') => ({ claim, nowMs, untilMs: nowMs + 100 });
const any = (nowMs: number, claim?: string, exceptCompanyIds: string[] = []) => ({
  ...claimAt(nowMs, claim),
  exceptCompanyIds,
});

describe('the note of a hold', () => {
  it('is claimed once when it is due, and again when its claim is over', async () => {
    const notes = createHoldNotes(scratch.db);
    await notes.touch(PLACE, { atMs: 5, dueAtMs: 10, ratePerSecond: 7 });
    expect(await notes.claim(any(9))).toBeNull();
    expect(await notes.claim(any(10, 'c1', ['comp_a']))).toBeNull();
    const note = { ...PLACE, touchedAtMs: 5, ratePerSecond: 7, claim: 'c1' };
    expect(await notes.claim(any(10))).toEqual(note);
    expect(await notes.claim(any(109, 'c2'))).toBeNull();
    expect(await notes.claim(any(110, 'c2'))).toMatchObject({ claim: 'c2' });
  });

  it('is neither put back nor removed by a process that has lost it', async () => {
    const notes = createHoldNotes(scratch.db);
    await notes.touch(PLACE, { atMs: 5, dueAtMs: 10 });
    const first = await notes.claim(any(10));
    if (!first) throw new Error('it is due');
    expect(await notes.putBack(first, 500, { keepsClaim: true })).toBe(true);
    await notes.touch(PLACE, { atMs: 20, dueAtMs: 20 });
    expect(await notes.putBack(first, 500)).toBe(false);
    await notes.remove(first);
    expect(await notes.hasAny(['wh_0', 'wh_1'])).toBe(true);
    const second = await notes.take('wh_1', claimAt(1, 'c2'));
    expect(second).toMatchObject({ touchedAtMs: 20, ratePerSecond: null });
    if (second) await notes.remove(second);
    expect(await notes.hasAny(['wh_1'])).toBe(false);
    expect(await notes.take('wh_1', claimAt(1))).toBeNull();
  });

  it('shows the hold that nobody has ended for the longest, of those without an end', async () => {
    const notes = createHoldNotes(scratch.db);
    expect(await notes.oldestMs()).toBeNull();
    await notes.touch(PLACE, { atMs: 3, dueAtMs: 10 });
    await notes.touch({ ...PLACE, id: 'wh_2' }, { atMs: 5, dueAtMs: 10, isOpenEnded: true });
    await notes.touch({ ...PLACE, id: 'wh_3' }, { atMs: 7, dueAtMs: 10, isOpenEnded: true });
    expect(await notes.oldestMs()).toBe(5);
    await notes.touch({ ...PLACE, id: 'wh_2' }, { atMs: 9, dueAtMs: 10, isOpenEnded: false });
    expect(await notes.oldestMs()).toBe(7);
  });

  it('keeps what it knows of the hold when its webhook is disabled or enabled', async () => {
    const notes = createHoldNotes(scratch.db);
    await notes.touch(PLACE, { atMs: 3, dueAtMs: 9, isOpenEnded: true, ratePerSecond: 7 });
    await notes.touch(PLACE, { atMs: 5, dueAtMs: 9 });
    expect(await notes.oldestMs()).toBe(5);
    expect(await notes.claim(any(9))).toMatchObject({ touchedAtMs: 5, ratePerSecond: 7 });
    await notes.touch(PLACE, { atMs: 6, dueAtMs: 9, ratePerSecond: null });
    expect(await notes.claim(any(9))).toMatchObject({ touchedAtMs: 6, ratePerSecond: null });
  });

  it('is that of each webhook of an app, unless it was touched since, and keeps its rate after a suspension', async () => {
    const notes = createHoldNotes(scratch.db);
    await notes.touch(PLACE, { atMs: 3, dueAtMs: 900, ratePerSecond: 7 });
    await notes.touch({ ...PLACE, id: 'wh_2' }, { atMs: 6, dueAtMs: 900, ratePerSecond: 1 });
    const claimed = { touchedAtMs: 5, companyId: 'comp_a', claim: 'c0' };
    const app = { ...claimed, id: 'app_1', kind: 'app', ratePerSecond: 20 } as const;
    const all = ['wh_1', 'wh_2', 'wh_3'];
    expect(await notes.expand(app, all, 30)).toBe(2);
    expect(await notes.expand(app, all, 40)).toBe(0);
    const [first, second] = [await notes.claim(any(30)), await notes.claim(any(30, 'c2'))];
    for (const note of [first, second]) {
      expect(note).toMatchObject({ kind: 'webhook', touchedAtMs: 5, ratePerSecond: 20 });
    }
    expect(new Set([first?.id, second?.id])).toEqual(new Set(['wh_1', 'wh_3']));
    const company = { ...claimed, id: 'comp_a', kind: 'company', ratePerSecond: null } as const;
    expect(await notes.expand({ ...company, touchedAtMs: 8 }, ['wh_2'], 50)).toBe(1);
    expect(await notes.claim(any(50))).toMatchObject({ id: 'wh_2', ratePerSecond: 1 });
    expect(await notes.expand({ ...app, ratePerSecond: null, touchedAtMs: 9 }, ['wh_2'], 60)).toBe(
      1,
    );
    expect(await notes.claim(any(60))).toMatchObject({ id: 'wh_2', ratePerSecond: null });
  });

  it('keeps what a look at the hold has found', async () => {
    const notes = createHoldNotes(scratch.db);
    await notes.touch(PLACE, { atMs: 3, dueAtMs: 9 });
    const first = await notes.claim(any(9));
    if (!first) throw new Error('it is due');
    await notes.putBack(first, 20, { keepsClaim: true, touchedAtMs: 8 });
    await notes.putBack(first, 20, { isOpenEnded: true });
    expect(await notes.oldestMs()).toBe(8);
    expect(await notes.claim(any(20))).toMatchObject({ touchedAtMs: 8 });
  });
});

describe('the holds of webhooks and apps', () => {
  const hold = (untilMs: number | null) => ({ sinceMs: 1, untilMs, reason: null, by: 'key_1' });

  async function store(webhook: Partial<WebhookDocument>, app: Partial<AppDocument> = {}) {
    const { db } = scratch;
    const of = { companyId: 'comp_a', updatedAt: new Date(5) };
    await collection(db, 'webhooks').insertOne({
      _id: 'wh_1',
      ...of,
      appId: 'app_1',
      disabled: false,
      ...webhook,
    } as WebhookDocument);
    await collection(db, 'apps').insertOne({ _id: 'app_1', ...of, ...app } as AppDocument);
  }

  it('are read together with the suspension of the company', async () => {
    await store({ held: hold(null) }, { held: hold(9) });
    const { holdersOf, isSuspended } = createHoldStates(scratch.db);
    const places = ['wh_1', 'wh_x'].map((webhookId) => ({ companyId: 'comp_a', webhookId }));
    const found = await holdersOf(places);
    expect(found.get('wh_1')).toMatchObject({
      webhook: { held: hold(null), disabled: false },
      appHeld: hold(9),
      isSuspended: false,
    });
    expect(found.get('wh_x')).toEqual({ webhook: null, appHeld: null, isSuspended: false });
    const company = { _id: 'comp_a', name: 'a', createdAt: new Date() };
    await collection(scratch.db, 'companies').insertOne({ ...company, suspendedAt: new Date() });
    expect((await holdersOf(places)).get('wh_1')).toMatchObject({ isSuspended: true });
    expect(await isSuspended('comp_a')).toBe(true);
  });

  it.each(['webhook', 'app'] as const)('of a %s is removed when it has ended', async (kind) => {
    await store({ held: hold(100) }, { held: hold(100) });
    const states = createHoldStates(scratch.db);
    const place = { id: kind === 'webhook' ? 'wh_1' : 'app_1', companyId: 'comp_a', kind };
    expect(await states.clearEnded(place, 99)).toBe(false);
    expect(await states.holdOf(place)).toEqual(hold(100));
    expect([await states.clearEnded(place, 100), await states.clearEnded(place, 100)]).toEqual([
      true,
      false,
    ]);
    expect(await states.holdOf(place)).toBeNull();
    const name = kind === 'webhook' ? ('webhooks' as const) : ('apps' as const);
    expect((await collection(scratch.db, name).findOne({}))?.updatedAt).toEqual(new Date(100));
  });

  it('of a disabled webhook counts as none: its deliveries are cancelled', async () => {
    await store({ held: hold(null), disabled: true });
    expect(await createHoldStates(scratch.db).holdOf(PLACE)).toBeNull();
  });
});
