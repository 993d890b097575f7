import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventTypeIdOf } from '@posthorn/domain/event-type-fields.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import type { EventTypeDocument } from '../documents.ts';
import { createEventTypeStore, type EventTypePage, type EventTypeStore } from './event-types.ts';
import { createRemovalStore } from './removals.ts';

describe('event types', () => {
  let opened: Awaited<ReturnType<typeof openScratchDatabase>>;
  let store: EventTypeStore;

  beforeAll(async () => {
    opened = await openScratchDatabase();
    store = createEventTypeStore(opened.db);
  });

  afterAll(() => opened.drop());

  const typeOf = (projectId: string, name: string, fields = {}): EventTypeDocument => ({
    _id: eventTypeIdOf(projectId, name),
    companyId: 'comp_1',
    projectId,
    name,
    description: '',
    group: null,
    schema: null,
    example: null,
    deprecated: false,
    archived: false,
    schemaVersion: 1,
    creationId: 'evt_1',
    createdAt: new Date(1),
    updatedAt: new Date(1),
    ...fields,
  });

  const namesOf = async (projectId: string, page: Partial<EventTypePage> = {}) => {
    const parts = store.list('comp_1', { projectId, skip: 0, limit: 100, ...page });
    return (await Array.fromAsync(parts)).flat().map(({ name }) => name);
  };

  const versionsOf = async (projectId: string, name: string): Promise<number[]> => {
    const found = await collection(opened.db, 'eventTypeVersions')
      .find({ projectId, name })
      .toArray();
    return found.map(({ version }) => version).sort((one, other) => one - other);
  };

  /** Stores one schema after the other. */
  async function change(type: EventTypeDocument, schemas: readonly string[]) {
    let seen = type;
    for (const schema of schemas) {
      const changed = await store.update(seen, {
        schema,
        schemaVersion: seen.schemaVersion + 1,
        updatedAt: new Date(seen.updatedAt.getTime() + 1),
      });
      if (!changed) throw new Error('it was changed meanwhile');
      seen = changed.after;
    }
    return seen;
  }

  async function inserted(type: EventTypeDocument): Promise<EventTypeDocument> {
    expect(await store.insert(type)).toBe(true);
    return type;
  }

  it('are unique by project and name, and listed by name within one project and company', async () => {
    for (const name of ['b', 'a.x', 'a']) {
      expect(await store.insert(typeOf('proj_1', name))).toBe(true);
    }
    expect(await store.insert(typeOf('proj_1', 'a', { description: 'another' }))).toBe(false);
    expect(await store.insert(typeOf('proj_10', 'c'))).toBe(true);
    expect(await namesOf('proj_1')).toEqual(['a', 'a.x', 'b']);
    expect(await namesOf('proj_1', { skip: 1, limit: 1 })).toEqual(['a.x']);
    expect(await store.count('comp_1', 'proj_1', 2)).toBe(2);
    expect(await store.count('comp_1', 'proj_10', 2)).toBe(1);
    expect(await store.count('comp_2', 'proj_1', 2)).toBe(0);
    expect(await store.find('comp_2', 'proj_1/a')).toBeNull();
    expect(await store.find('comp_1', 'proj_1/a')).toMatchObject({ description: '' });
  });

  it('are listed by group and by whether they are archived, without schema and example', async () => {
    const large = { schema: '{}', example: '{}' };
    await store.insert(typeOf('proj_2', 'a', { ...large, group: 'g' }));
    await store.insert(typeOf('proj_2', 'b', { archived: true }));
    expect(await namesOf('proj_2', { group: 'g' })).toEqual(['a']);
    expect(await namesOf('proj_2', { archived: true })).toEqual(['b']);
    expect(await namesOf('proj_2', { archived: false })).toEqual(['a']);
    const [[listed] = []] = await Array.fromAsync(
      store.list('comp_1', { projectId: 'proj_2', skip: 0, limit: 1 }),
    );
    expect(listed).not.toHaveProperty('schema');
    expect(listed).not.toHaveProperty('example');
  });

  it('keep their newest 20 schemas, also null, and lose all with themselves', async () => {
    const type = typeOf('proj_3', 'a');
    await store.insert(type);
    // Its versions are no others of `a`.
    const other = typeOf('proj_3', 'a/b');
    await store.insert(other);
    await change(other, ['"other"']);
    const schemas = Array.from({ length: 21 }, (_, n) => `"${n + 2}"`);
    const first = await change(type, schemas.slice(0, 1));
    expect(await store.findSchema(first, 1)).toBeNull();
    const last = await change(first, schemas.slice(1));
    expect(last.schemaVersion).toBe(22);
    expect(await store.findSchema(last, 22)).toBe('"22"');
    expect(await store.findSchema(last, 3)).toBe('"3"');
    for (const gone of [2, 0, 23]) expect(await store.findSchema(last, gone)).toBeUndefined();
    expect(await versionsOf('proj_3', 'a')).toEqual(Array.from({ length: 19 }, (_, n) => n + 3));
    expect(await store.remove(last)).toBe(true);
    expect(await store.remove(last)).toBe(false);
    expect(await versionsOf('proj_3', 'a')).toEqual([]);
    expect(await versionsOf('proj_3', 'a/b')).toEqual([1]);
  });

  it('of which two changes at once succeed one after the other', async () => {
    const type = typeOf('proj_4', 'a');
    await store.insert(type);
    const write = (schema: string) =>
      store.update(type, { schema, schemaVersion: 2, updatedAt: new Date(2) });
    const results = await Promise.all([write('"1"'), write('"2"')]);
    expect(results.filter((each) => each === null)).toHaveLength(1);
    const stored = await store.find('comp_1', type._id);
    expect(stored).toEqual(results.find((each) => each !== null)?.after);
    expect(await store.findSchema(stored ?? type, 1)).toBeNull();
  });

  it('are inserted together, but for those that are there', async () => {
    const first = typeOf('proj_7', 'a');
    await change(await inserted(first), ['"2"']);
    await store.remove({ ...first, schemaVersion: 2 });
    // An update that ran during the removal has left this one.
    await store.update(await inserted(typeOf('proj_7', 'b')), {
      schemaVersion: 2,
      updatedAt: new Date(2),
    });
    await collection(opened.db, 'eventTypes').deleteOne({ _id: 'proj_7/b' });
    await inserted(typeOf('proj_7', 'c'));
    const all = ['a', 'b', 'c'].map((name) => typeOf('proj_7', name, { description: 'new' }));
    expect(await store.insertEach('comp_1', all)).toEqual([all[2]]);
    const found = await store.findEach('comp_1', ['proj_7/c', 'proj_7/a', 'proj_7/none']);
    const shown = found.map(({ name, description }) => [name, description]);
    expect(shown.toSorted()).toEqual([
      ['a', 'new'],
      ['c', ''],
    ]);
    expect(await versionsOf('proj_7', 'b')).toEqual([]);
    expect(await store.insertEach('comp_1', [])).toEqual([]);
  });

  it('are changed together, and keep their schemas, but for those that others have changed', async () => {
    const types = await Promise.all(
      ['a', 'b', 'c', 'd'].map((name) => inserted(typeOf('proj_8', name, { schema: '"1"' }))),
    );
    const [first, second, third, fourth] = types as [
      EventTypeDocument,
      EventTypeDocument,
      EventTypeDocument,
      EventTypeDocument,
    ];
    await store.update(second, { description: 'of another', updatedAt: new Date(2) });
    await store.remove(fourth);
    const at = new Date(3);
    const schema = { schema: '"2"', schemaVersion: 2, updatedAt: at };
    const missed = await store.updateEach('comp_1', [
      { seen: first, changes: schema },
      { seen: second, changes: schema },
      { seen: third, changes: { archived: true, updatedAt: at } },
      { seen: fourth, changes: schema },
    ]);
    expect(missed).toEqual(new Set([second._id, fourth._id]));
    const stored = await store.findEach(
      'comp_1',
      types.map(({ _id }) => _id),
    );
    expect(stored).toEqual([
      { ...first, ...schema },
      { ...second, description: 'of another', updatedAt: new Date(2) },
      { ...third, archived: true, updatedAt: at },
    ]);
    expect(await store.findSchema({ ...first, ...schema }, 1)).toBe('"1"');
    expect(await store.updateEach('comp_1', [])).toEqual(new Set());
  });

  it('changed together keep their newest 20 schemas', async () => {
    const type = await inserted(typeOf('proj_9', 'a'));
    const seen = await change(
      type,
      Array.from({ length: 19 }, (_, n) => `"${n + 2}"`),
    );
    const updatedAt = new Date(1_000);
    await store.updateEach('comp_1', [
      { seen, changes: { schema: '"21"', schemaVersion: 21, updatedAt } },
    ]);
    expect(await versionsOf('proj_9', 'a')).toEqual(Array.from({ length: 19 }, (_, n) => n + 2));
  });

  it('that are not archived are found by names and by beginnings', async () => {
    await store.insert(typeOf('proj_5', 'order.paid'));
    await store.insert(typeOf('proj_5', 'order.item.added', { archived: true }));
    const names = ['order.paid', 'order.item.added', 'order'];
    expect(await store.knownAmong('comp_1', 'proj_5', names)).toEqual(new Set(['order.paid']));
    const begins = (beginning: string) => store.hasBeginning('comp_1', 'proj_5', beginning);
    expect(await begins('order.')).toBe(true);
    expect(await begins('order.item.')).toBe(false);
    expect(await begins('order.paid')).toBe(false);
    expect(await begins('orde:')).toBe(false);
  });

  it('go with their project, in steps', async () => {
    const removals = createRemovalStore(opened.db);
    for (const name of ['a', 'b', 'c']) {
      const type = typeOf('proj_6', name);
      await store.insert(type);
      await change(type, ['"2"']);
    }
    await store.insert(typeOf('proj_60', 'stays'));
    const removal = {
      id: 'rmv_1',
      companyId: 'comp_1',
      kind: 'project',
      rootId: 'proj_6',
    } as const;
    const removed: number[] = [];
    do removed.push(await removals.removeCatalogue(removal, 2));
    while (removed.at(-1) !== 0);
    expect(removed).toEqual([2, 1, 2, 1, 0]);
    expect(await namesOf('proj_6')).toEqual([]);
    expect(await versionsOf('proj_6', 'a')).toEqual([]);
    expect(await namesOf('proj_60')).toEqual(['stays']);
    const ofApp = { ...removal, kind: 'app', rootId: 'proj_60' } as const;
    expect(await removals.removeCatalogue(ofApp, 2)).toBe(0);
  });
});
