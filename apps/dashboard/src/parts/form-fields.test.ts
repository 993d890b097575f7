import { describe, expect, it } from '@jest/globals';
import { changedOwnFields, entryProblem, readOwnFields } from './form-fields.ts';

function formOf(uid: string, entries: readonly (readonly [key: string, value: string])[]) {
  const form = new FormData();
  form.set('uid', uid);
  form.set('metadata', JSON.stringify(entries.map(([key, value]) => ({ key, value }))));
  return form;
}

const stored = { uid: 'customer-17', metadata: { plan: 'gold', note: 'two\r\nlines ' } };
const STORED = Object.entries(stored.metadata);

describe('the own fields of a form', () => {
  it('are what was typed, without rows that are empty', () => {
    const typed = [
      ['plan', 'gold'],
      ['note', ''],
      ['', ''],
    ] as const;
    const metadata = { plan: 'gold', note: '' };
    expect(readOwnFields(formOf(' customer-17 ', typed))).toEqual({ uid: 'customer-17', metadata });
  });

  it('leave out a uid that the form does not show, as in the portal', () => {
    const form = formOf('customer-17', []);
    form.delete('uid');
    expect(readOwnFields(form)).toEqual({ metadata: {} });
  });

  it('change nothing that was not touched, whatever its order', () => {
    expect(changedOwnFields(formOf('customer-17', STORED), stored)).toEqual({});
    expect(changedOwnFields(formOf('customer-17', STORED.toReversed()), stored)).toEqual({});
  });

  it('send null for an emptied uid, and the other rows when one was removed', () => {
    expect(changedOwnFields(formOf(' ', STORED), stored)).toEqual({ uid: null });
    expect(changedOwnFields(formOf('customer-17', [['plan', 'gold']]), stored)).toEqual({
      metadata: { plan: 'gold' },
    });
    expect(changedOwnFields(formOf('customer-17', []), stored)).toEqual({ metadata: {} });
  });
});

it('refuses a value without a key, and a key in two rows', () => {
  const plan = { key: 'plan', value: 'gold' };
  const again = { key: 'plan', value: 'silver' };
  const without = { key: '', value: 'gold' };
  const empty = { key: '', value: '' };
  const all = [plan, again, without, empty];
  expect(all.map((each) => entryProblem(each, all))).toEqual([
    'Another row has this key',
    'Another row has this key',
    'Give the value a key',
    null,
  ]);
  expect(entryProblem(plan, [plan, without])).toBeNull();
});
