import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { DeliveryStatus, Outcome } from '@posthorn/domain/delivery/delivery.ts';
import { partFor, type PageProgress, type Resend } from '@posthorn/domain/resend.ts';
import { ResendMovedError, type ResendStore } from '@posthorn/platform/mongo/webhooks/resends.ts';
import { sampleResend } from '../memory/memory-resends.ts';

export interface OpenResends {
  resends: ResendStore;
  /** Removes everything. */
  clear: () => Promise<void>;
  addDelivery: (
    id: string,
    status: DeliveryStatus,
    owner?: { webhookId?: string; companyId?: string; lastOutcome?: Outcome },
  ) => Promise<void>;
  /** Adds an enabled webhook of app_1 of comp_a. */
  addWebhook: (id: string) => Promise<void>;
  close: () => Promise<void>;
}

const ofApp = (id = 'rsnd_1', overrides: Partial<Resend> = {}): Resend =>
  sampleResend(id, { appId: 'app_1', webhookId: null, ...overrides });

/** What every ResendStore does. */
export function resendContract(open: () => Promise<OpenResends>): void {
  let opened: OpenResends;
  let resends: ResendStore;

  beforeAll(async () => {
    opened = await open();
    ({ resends } = opened);
  });

  beforeEach(() => opened.clear());

  afterAll(() => opened.close());

  describe('the deliveries of a resend', () => {
    beforeEach(async () => {
      await opened.addDelivery('dlv_1', 'exhausted');
      await opened.addDelivery('dlv_2', 'cancelled');
      await opened.addDelivery('dlv_3', 'delivered');
      await opened.addDelivery('dlv_4', 'pending');
      await opened.addDelivery('dlv_5', 'exhausted');
      await opened.addDelivery('dlv_6', 'exhausted', { webhookId: 'wh_2' });
      await opened.addDelivery('dlv_7', 'exhausted', { companyId: 'comp_b' });
    });

    it('are the failed ones of its webhook and company, oldest first', async () => {
      const resend = sampleResend('rsnd_1');
      expect((await resends.nextPage(resend, 9)).ids).toEqual(['dlv_1', 'dlv_2', 'dlv_5']);
      expect((await resends.nextPage(resend, 2)).ids).toEqual(['dlv_1', 'dlv_2']);
      expect(await resends.count(resend)).toBe(3);
    });

    it('are only those whose last attempt had its outcome, and count as all that failed', async () => {
      await opened.addDelivery('dlv_8', 'exhausted', { lastOutcome: 'timeout' });
      const resend = sampleResend('rsnd_1', { outcome: 'timeout' });
      expect((await resends.nextPage(resend, 9)).ids).toEqual(['dlv_8']);
      expect(await resends.count(resend)).toBe(4);
    });

    it('are between its bounds, both exclusive', async () => {
      const resend = sampleResend('rsnd_1', { afterId: 'dlv_1', beforeId: 'dlv_5' });
      expect((await resends.nextPage(resend, 9)).ids).toEqual(['dlv_2']);
      expect(await resends.count(resend)).toBe(1);
      const one = sampleResend('rsnd_2', { afterId: 'dlv_1', beforeId: 'dlv_1' });
      expect((await resends.nextPage(one, 9)).ids).toEqual([]);
    });

    it('are those of all enabled webhooks when it is of an app, whose pages its parts have', async () => {
      for (const id of ['wh_1', 'wh_2']) await opened.addWebhook(id);
      expect(await resends.count(ofApp())).toBe(4);
      expect(await resends.count(ofApp('rsnd_1', { afterId: 'dlv_1' }))).toBe(3);
      expect((await resends.nextPage(ofApp(), 9)).ids).toEqual([]);
    });
  });

  describe('a resend', () => {
    it('moves from page to page to its end', async () => {
      const resend = sampleResend('rsnd_1', { total: 4, outcome: 'timeout' });
      await resends.insert(resend);
      const begun = await resends.beginPage(resend, ['dlv_1', 'dlv_2'], 5);
      expect(begun).toEqual({ ...resend, page: ['dlv_1', 'dlv_2'], updatedAtMs: 5 });
      const next = await resends.endPage(begun, { succeeded: 1, failed: 1 }, 6);
      expect(next).toMatchObject({ afterId: 'dlv_2', page: [], succeeded: 1, failed: 1, total: 4 });
      const last = await resends.beginPage(next, ['dlv_3'], 7);
      await resends.finish(await resends.endPage(last, { succeeded: 1, failed: 0 }, 8), 9);
      expect(await resends.findOne('comp_a', 'rsnd_1')).toEqual({
        ...resend,
        status: 'done',
        afterId: 'dlv_3',
        page: [],
        total: 3,
        succeeded: 2,
        failed: 1,
        updatedAtMs: 9,
      });
    });

    it('is counted once when several processes end the same page', async () => {
      const resend = sampleResend('rsnd_1');
      await resends.insert(resend);
      const begun = await resends.beginPage(resend, ['dlv_1'], 5);
      const result = { succeeded: 1, failed: 0 };
      const ends = Array.from({ length: 5 }, () => resends.endPage(begun, result, 6));
      const settled = await Promise.allSettled(ends);
      expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      for (const each of settled) {
        if (each.status === 'rejected') expect(each.reason).toBeInstanceOf(ResendMovedError);
      }
      expect(await resends.findOne('comp_a', 'rsnd_1')).toMatchObject({ succeeded: 1, page: [] });
    });

    it('is moved by the process that has its newest state, and by no other', async () => {
      const resend = sampleResend('rsnd_1');
      await resends.insert(resend);
      const begun = await resends.beginPage(resend, ['dlv_1'], 5);
      expect(await resends.beginPage(begun, ['dlv_1'], 6)).toMatchObject({ page: ['dlv_1'] });
      await expect(resends.beginPage(resend, ['dlv_2'], 7)).rejects.toThrow(ResendMovedError);
      await resends.endPage(begun, { succeeded: 0, failed: 1 }, 8);
      await expect(resends.finish(resend, 9)).rejects.toThrow(ResendMovedError);
      await resends.finish({ ...resend, afterId: 'dlv_1' }, 9);
      const ended = resends.beginPage({ ...resend, afterId: 'dlv_1' }, ['dlv_2'], 10);
      await expect(ended).rejects.toThrow(ResendMovedError);
    });

    it('is not moved after it was removed', async () => {
      const resend = sampleResend('rsnd_1');
      await resends.insert(resend);
      await resends.remove(resend);
      await expect(resends.beginPage(resend, ['dlv_1'], 5)).rejects.toThrow(ResendMovedError);
    });

    it('is asked to abort once, while it runs, and keeps its total when it is aborted', async () => {
      const resend = sampleResend('rsnd_1', { total: 9 });
      await resends.insert(resend);
      await resends.askToAbort('comp_b', 'rsnd_1', 4);
      expect(await resends.findOne('comp_a', 'rsnd_1')).toEqual(resend);
      for (const atMs of [5, 6]) await resends.askToAbort('comp_a', 'rsnd_1', atMs);
      const asked = { ...resend, abortAskedAtMs: 5, dueAtMs: 5 };
      expect(await resends.findOne('comp_a', 'rsnd_1')).toEqual(asked);
      await resends.finish({ ...asked, succeeded: 2, failed: 1 }, 7, 'aborted');
      const counts = { status: 'aborted', total: 9, succeeded: 2, failed: 1 };
      expect(await resends.findOne('comp_a', 'rsnd_1')).toMatchObject(counts);
      await resends.insert(sampleResend('rsnd_2', { status: 'done' }));
      await resends.askToAbort('comp_a', 'rsnd_2', 8);
      expect(await resends.findOne('comp_a', 'rsnd_2')).toMatchObject({ abortAskedAtMs: null });
    });

    it('is due at the end of the hold for which it waits, a part by the resend of its app', async () => {
      const times = { publishedAtMs: 1, beganAtMs: 1, movedAtMs: 1, successAtMs: 1 };
      const progress = {
        open: [],
        unpublished: [],
        succeeded: 0,
        copies: 0,
        ...times,
        isHeld: true,
      };
      const later = { dueAtMs: 90_000 };
      const [held, other] = ['wh_1', 'wh_2'].map((webhookId) =>
        sampleResend(`rsnd_of_${webhookId}`, { webhookId, ...later }),
      );
      const app = { ...ofApp('rsnd_app'), ...later };
      const part = partFor(app, 'wh_3', 3);
      for (const each of [held, other, app, part]) if (each) await resends.insert(each);
      for (const each of [held, part]) if (each) await resends.keepProgress(each, progress);
      const dueOf = async (id: string) => (await resends.findOne('comp_a', id))?.dueAtMs;
      await resends.continueHeld('comp_a', 'wh_1', 5);
      expect([await dueOf('rsnd_of_wh_1'), await dueOf('rsnd_app')]).toEqual([5, 90_000]);
      await resends.continueHeld('comp_b', null, 6);
      await resends.continueHeld('comp_a', null, 7);
      expect([await dueOf('rsnd_of_wh_2'), await dueOf('rsnd_app')]).toEqual([90_000, 7]);
    });

    it('is shown to its company, newest first, by its app and by its webhook', async () => {
      const single = { afterId: 'dlv_1', beforeId: 'dlv_1', page: ['dlv_1'] };
      await resends.insert(sampleResend('rsnd_1', { webhookId: 'wh_1' }));
      await resends.insert(sampleResend('rsnd_2', { webhookId: 'wh_2', ...single }));
      await resends.insert(sampleResend('rsnd_3', { webhookId: 'wh_2', ...single }));
      await resends.insert(ofApp('rsnd_4'));
      await resends.insert(sampleResend('rsnd_5', { companyId: 'comp_b', webhookId: 'wh_5' }));
      await resends.insert(partFor(ofApp('rsnd_4'), 'wh_2', 3));
      await resends.endPage(partFor(ofApp('rsnd_4'), 'wh_2', 3), { succeeded: 2, failed: 0 }, 4);
      const shown = async (filter: object, limit = 9) =>
        (await resends.listShown('comp_a', filter, limit)).map(({ id }) => id);
      expect(await shown({})).toEqual(['rsnd_4', 'rsnd_3', 'rsnd_2', 'rsnd_1']);
      expect(await shown({ beforeId: 'rsnd_4' }, 2)).toEqual(['rsnd_3', 'rsnd_2']);
      expect(await shown({ webhookId: 'wh_2' })).toEqual(['rsnd_3', 'rsnd_2']);
      expect(await shown({ appId: 'app_1' })).toEqual(['rsnd_4']);
      expect(await resends.listShown('comp_a', {}, 1)).toMatchObject([{ succeeded: 2 }]);
    });

    it('is found by its company only', async () => {
      await resends.insert(sampleResend('rsnd_2', { companyId: 'comp_b' }));
      expect(await resends.findOne('comp_a', 'rsnd_2')).toBeNull();
      expect(await resends.findOne('comp_b', 'rsnd_2')).toMatchObject({ id: 'rsnd_2' });
    });
  });

  describe('a resend that is due', () => {
    const claim = (nowMs: number, exceptCompanyIds: readonly string[] = []) =>
      resends.claim({ claim: `c${nowMs}`, nowMs, untilMs: nowMs + 100, exceptCompanyIds });
    const claimedId = async (nowMs: number, exceptCompanyIds?: readonly string[]) =>
      (await claim(nowMs, exceptCompanyIds))?.id;

    it('is claimed once, the one that has been due for the longest first', async () => {
      await resends.insert(sampleResend('rsnd_1', { webhookId: 'wh_1', dueAtMs: 20 }));
      await resends.insert(sampleResend('rsnd_2', { webhookId: 'wh_2', dueAtMs: 10 }));
      await resends.insert(sampleResend('rsnd_3', { webhookId: 'wh_3', dueAtMs: 31 }));
      expect(await claim(30)).toMatchObject({ id: 'rsnd_2', dueAtMs: 130 });
      expect([await claimedId(30), await claimedId(30)]).toEqual(['rsnd_1', undefined]);
      // Whoever claimed it may have ended meanwhile.
      expect(await claimedId(130)).toBe('rsnd_3');
      expect([await claimedId(130), await claimedId(130)].sort()).toEqual(['rsnd_1', 'rsnd_2']);
    });

    it('is claimed by one of many', async () => {
      for (const n of [1, 2, 3]) {
        await resends.insert(sampleResend(`rsnd_${n}`, { webhookId: `wh_${n}`, dueAtMs: n }));
      }
      const ids = await Promise.all([1, 2, 3, 4, 5, 6].map(() => claimedId(9)));
      expect(ids.filter((id) => id !== undefined).sort()).toEqual(['rsnd_1', 'rsnd_2', 'rsnd_3']);
    });

    it('is left alone when its company is to be left out', async () => {
      await resends.insert(sampleResend('rsnd_1', { companyId: 'comp_a' }));
      await resends.insert(sampleResend('rsnd_2', { companyId: 'comp_b' }));
      expect(await claimedId(9, ['comp_a', 'comp_b'])).toBeUndefined();
      expect(await claimedId(9, ['comp_a', 'comp_c'])).toBe('rsnd_2');
    });

    it('is neither a part nor one that has ended', async () => {
      await resends.insert(sampleResend('rsnd_1', { status: 'done' }));
      await resends.insert(partFor(ofApp('rsnd_2'), 'wh_2', 3));
      expect(await claimedId(9)).toBeUndefined();
    });

    it('is put back with its next time, and with where the search for webhooks has got', async () => {
      await resends.insert(ofApp());
      const claimed = await claim(10);
      if (!claimed) throw new Error('it is due');
      await resends.keepScanned(claimed, 'wh_5');
      expect(await resends.putBack(claimed, 50)).toBe(50);
      expect(await claimedId(49)).toBeUndefined();
      expect(await claim(50)).toMatchObject({ id: 'rsnd_1', scannedTo: 'wh_5' });
    });

    it('is kept by the process that renews its claim, and lost to one that claims it', async () => {
      await resends.insert(sampleResend('rsnd_1'));
      const first = await claim(10);
      if (!first) throw new Error('it is due');
      expect(await resends.renew(first, 500)).toBe(true);
      expect(await claim(499)).toBeNull();
      expect(await claim(500)).toMatchObject({ claim: 'c500' });
      expect([await resends.renew(first, 900), await resends.putBack(first, 900)]).toEqual([
        false,
        null,
      ]);
    });

    it('is due at once when a client asks to abort it', async () => {
      await resends.insert(sampleResend('rsnd_1', { dueAtMs: 1_000 }));
      await resends.askToAbort('comp_a', 'rsnd_1', 5);
      expect(await claim(5)).toMatchObject({ abortAskedAtMs: 5 });
    });

    it('is due at once after the work that a client aborts', async () => {
      await resends.insert(sampleResend('rsnd_1', { dueAtMs: 5 }));
      const claimed = await claim(5);
      if (!claimed) throw new Error('it is due');
      await resends.askToAbort('comp_a', 'rsnd_1', 6);
      expect(await claim(6)).toBeNull();
      // The work has not read it yet, and would wait for an hour.
      expect(await resends.putBack(claimed, 3_600_000)).toBe(0);
      expect(await claim(7)).toMatchObject({ abortAskedAtMs: 6 });
    });
  });

  describe('what is known of a page', () => {
    const progress: PageProgress = {
      open: ['dlv_2'],
      unpublished: [],
      succeeded: 1,
      copies: 1,
      publishedAtMs: 4,
      beganAtMs: 3,
      movedAtMs: 5,
      successAtMs: 5,
      isHeld: true,
    };

    it('is kept until the end of the page', async () => {
      await resends.insert(sampleResend('rsnd_1'));
      const begun = await resends.beginPage(sampleResend('rsnd_1'), ['dlv_1', 'dlv_2'], 3);
      expect(await resends.keepProgress(begun, progress)).toEqual({ ...begun, progress });
      expect(await resends.findOne('comp_a', 'rsnd_1')).toEqual({ ...begun, progress });
      await resends.endPage(begun, { succeeded: 2, failed: 0 }, 6);
      expect(await resends.findOne('comp_a', 'rsnd_1')).toMatchObject({ progress: null });
    });

    it('is not stored by a process that others have overtaken', async () => {
      await resends.insert(sampleResend('rsnd_1'));
      const begun = await resends.beginPage(sampleResend('rsnd_1'), ['dlv_1'], 3);
      await resends.endPage(begun, { succeeded: 1, failed: 0 }, 6);
      await expect(resends.keepProgress(begun, progress)).rejects.toThrow(ResendMovedError);
    });
  });

  describe('a resend of the failures of a webhook', () => {
    it('runs once at a time, beside those of known deliveries, and may run again after its end', async () => {
      const first = sampleResend('rsnd_1');
      const single = { afterId: 'dlv_1', beforeId: 'dlv_1', page: ['dlv_1'] };
      const replay = { afterId: '', beforeId: 'dlv_3', page: ['dlv_2', 'dlv_3'] };
      expect(await resends.insert(first)).toBe(true);
      expect(await resends.insert(sampleResend('rsnd_2'))).toBe(false);
      expect(await resends.insert(sampleResend('rsnd_3', { webhookId: 'wh_2' }))).toBe(true);
      expect(await resends.insert(sampleResend('rsnd_4', single))).toBe(true);
      expect(await resends.insert(sampleResend('rsnd_5', single))).toBe(true);
      expect(await resends.insert(sampleResend('rsnd_6', replay))).toBe(true);
      expect(await resends.insert(sampleResend('rsnd_7', replay))).toBe(true);
      await resends.finish(first, 5);
      expect(await resends.insert(sampleResend('rsnd_2'))).toBe(true);
      expect(await resends.findOne('comp_a', 'rsnd_2')).toEqual(sampleResend('rsnd_2'));
    });
  });

  describe('a resend of an app', () => {
    it('runs once at a time, and may run again after its end', async () => {
      const first = ofApp('rsnd_1');
      expect(await resends.insert(first)).toBe(true);
      expect(await resends.insert(ofApp('rsnd_2'))).toBe(false);
      expect(await resends.insert(ofApp('rsnd_3', { appId: 'app_2' }))).toBe(true);
      await resends.finish(first, 5);
      expect(await resends.insert(ofApp('rsnd_2'))).toBe(true);
    });

    it('has the enabled webhooks of the app, in the order of their ids', async () => {
      for (const id of ['wh_2', 'wh_1']) await opened.addWebhook(id);
      expect(await resends.webhooksAfter(ofApp(), '', 1)).toEqual(['wh_1']);
      expect(await resends.webhooksAfter(ofApp(), 'wh_1', 9)).toEqual(['wh_2']);
    });
  });

  describe('the parts of a resend of an app', () => {
    const part = (webhookId: string) => partFor(ofApp(), webhookId, 3);

    it('exist once each, and are open until they are finished', async () => {
      await resends.insert(ofApp());
      expect(await resends.lastWebhook(ofApp())).toBe('');
      for (const webhookId of ['wh_1', 'wh_2']) await resends.insert(part(webhookId));
      expect(await resends.insert(part('wh_1'))).toBe(false);
      expect(await resends.insert(partFor(ofApp('rsnd_2'), 'wh_9', 3))).toBe(true);
      await resends.finish(part('wh_2'), 5);
      expect(await resends.openParts(ofApp())).toEqual([part('wh_1')]);
      expect(await resends.lastWebhook(ofApp())).toBe('wh_2');
    });

    it('are added up in the resend that its company sees, and removed at its end', async () => {
      await resends.insert(ofApp());
      for (const [webhookId, succeeded, failed] of [
        ['wh_1', 2, 0] as const,
        ['wh_2', 5, 1] as const,
      ]) {
        await resends.insert(part(webhookId));
        await resends.endPage(part(webhookId), { succeeded, failed }, 4 + failed);
      }
      const sums = { succeeded: 7, failed: 1, updatedAtMs: 5 };
      expect(await resends.findShown('comp_a', 'rsnd_1')).toEqual({ ...ofApp(), ...sums });
      expect(await resends.findShown('comp_b', 'rsnd_1')).toBeNull();
      expect(await resends.findShown('comp_a', part('wh_1').id)).toBeNull();
      await resends.finish({ ...ofApp(), ...sums }, 9);
      const end = { ...sums, total: 8, status: 'done', updatedAtMs: 9 };
      expect(await resends.findShown('comp_a', 'rsnd_1')).toEqual({ ...ofApp(), ...end });
      expect(await resends.findOne('comp_a', part('wh_1').id)).toBeNull();
    });
  });
}
