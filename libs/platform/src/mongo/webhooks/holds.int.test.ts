import { beforeEach, describe, expect, it } from '@jest/globals';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import type { AppDocument, WebhookDocument } from '../documents.ts';
import type { Claimed } from '../work-notes.ts';
import { createHoldNotes, createHoldStates, type HoldNote, type HoldNotes } from './holds.ts';

const scratch = duringTests(openScratchDatabase, ({ drop }) => drop());

beforeEach(async () => {
  for (const name of ['holdNotes', 'webhooks', 'apps', 'companies'] as const) {
    await collection(scratch.db, name).deleteMany({});
  }
});

const PLACE = { id: 'wh_1', companyId: 'comp_a', kind: 'webhook' } as const;
const claimAt = (nowMs: number, claim = 'work/1') => ({ claim, nowMs, untilMs: nowMs + 100 });
const any = (nowMs: number, claim?: string, exceptCompanyIds: string[] = []) => ({
  ...claimAt(nowMs, claim),
  exceptCompanyIds,
});

async function claimed(
  notes: HoldNotes,
  nowMs: number,
  claim?: string,
): Promise<Claimed<HoldNote>> {
  const note = await notes.claim(any(nowMs, claim));
  if (!note) throw new Error('no note is due');
  return note;
}

describe('the note of a hold', () => {
  it('is claimed once when it is due, and again when its claim is over', async () => {
    const notes = createHoldNotes(scratch.db);
    await notes.touch(PLACE, { atMs: 5, dueAtMs: 10, ratePerSecond: 7 });
    expect(await notes.claim(any(9))).toBeNull();
    expect(await notes.claim(any(10, 'work/1', ['comp_a']))).toBeNull();
    const note = { ...PLACE, touchedAtMs: 5, ratePerSecond: 7, claim: 'work/1' };
    expect(await notes.claim(any(10))).toEqual(note);
    expect(await notes.claim(any(109, 'work/2'))).toBeNull();
    expect(await notes.claim(any(110, 'work/2'))).toMatchObject({ claim: 'work/2' });
  });

  it('is neither put back nor removed by a process that has lost it', async () => {
    const notes = createHoldNotes(scratch.db);
    await notes.touch(PLACE, { atMs: 5, dueAtMs: 10 });
    const first = await claimed(notes, 10);
    expect(await notes.renew(first, 500)).toBe(true);
    const second = await claimed(notes, 500, 'work/2');
    expect([await notes.renew(first, 900), await notes.putBack(first, 900)]).toEqual([false, null]);
    expect([await notes.remove(first), await notes.hasAny(['wh_0', 'wh_1'])]).toEqual([
      false,
      true,
    ]);
    expect([await notes.remove(second), await notes.hasAny(['wh_1'])]).toEqual([true, false]);
  });

  it('is kept by the process that works on it when it is touched, and due at once afterwards', async () => {
    const notes = createHoldNotes(scratch.db);
    await notes.touch(PLACE, { atMs: 5, dueAtMs: 10 });
    const note = await claimed(notes, 10);
    await notes.touch(PLACE, { atMs: 20, dueAtMs: 20, ratePerSecond: 3 });
    const app = { ...PLACE, id: 'app_1', kind: 'app', touchedAtMs: 22, ratePerSecond: 4 } as const;
    expect(await notes.rateOf('wh_1')).toBe(3);
    await notes.expand(app, ['wh_1'], 22);
    expect(await notes.rateOf('wh_1')).toBe(4);
    expect(await notes.claim(any(109, 'work/2'))).toBeNull();
    expect([await notes.remove(note), await notes.putBack(note, 90_000)]).toEqual([false, 0]);
    expect(await notes.claim(any(22, 'work/2'))).toMatchObject({
      touchedAtMs: 22,
      ratePerSecond: 4,
    });
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
    const note = await claimed(notes, 9);
    expect(note).toMatchObject({ touchedAtMs: 5, ratePerSecond: 7 });
    await notes.putBack(note, 9);
    await notes.touch(PLACE, { atMs: 6, dueAtMs: 9, ratePerSecond: null });
    expect(await notes.claim(any(9))).toMatchObject({ touchedAtMs: 6, ratePerSecond: null });
  });

  it('is that of each webhook of an app, unless it was touched since, and keeps its rate after a suspension', async () => {
    const notes = createHoldNotes(scratch.db);
    await notes.touch(PLACE, { atMs: 3, dueAtMs: 900, ratePerSecond: 7 });
    await notes.touch({ ...PLACE, id: 'wh_2' }, { atMs: 6, dueAtMs: 900, ratePerSecond: 1 });
    const known = { touchedAtMs: 5, companyId: 'comp_a' };
    const app = { ...known, id: 'app_1', kind: 'app', ratePerSecond: 20 } as const;
    const all = ['wh_1', 'wh_2', 'wh_3'];
    expect(await notes.expand(app, all, 30)).toBe(2);
    expect(await notes.expand(app, all, 40)).toBe(0);
    const [first, second] = [await notes.claim(any(30)), await notes.claim(any(30, 'work/2'))];
    for (const note of [first, second]) {
      expect(note).toMatchObject({ kind: 'webhook', touchedAtMs: 5, ratePerSecond: 20 });
    }
    expect(new Set([first?.id, second?.id])).toEqual(new Set(['wh_1', 'wh_3']));
    const company = { ...known, id: 'comp_a', kind: 'company', ratePerSecond: null } as const;
    expect(await notes.expand({ ...company, touchedAtMs: 8 }, ['wh_2'], 50)).toBe(1);
    const third = await claimed(notes, 50);
    expect(third).toMatchObject({ id: 'wh_2', ratePerSecond: 1 });
    await notes.putBack(third, 60);
    expect(await notes.expand({ ...app, ratePerSecond: null, touchedAtMs: 9 }, ['wh_2'], 60)).toBe(
      1,
    );
    expect(await notes.claim(any(60))).toMatchObject({ id: 'wh_2', ratePerSecond: null });
  });

  it('keeps what a look at the hold has found', async () => {
    const notes = createHoldNotes(scratch.db);
    await notes.touch(PLACE, { atMs: 3, dueAtMs: 9 });
    const first = await claimed(notes, 9);
    await notes.noteOpenEnded(first);
    expect(await notes.oldestMs()).toBe(3);
    await notes.noteEnd(first, 8);
    expect(await notes.putBack(first, 20)).toBe(0);
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
