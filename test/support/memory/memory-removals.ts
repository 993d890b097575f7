import type { Removal, RemovalStore } from '@posthorn/platform/mongo/companies/removals.ts';
import { asyncNotes, createMemoryNotes, type StoredNote } from './memory-notes.ts';

interface Owned {
  projectId: string;
  appId?: string | null;
}

/** The store of removals in memory, with the objects that it removes. All belong to COMPANY. */
export interface MemoryRemovals {
  store: RemovalStore;
  projects: Set<string>;
  apps: Map<string, Owned>;
  webhooks: Map<string, Owned>;
  /** The webhook of each pending delivery, by the delivery's id. */
  pending: Map<string, string>;
  /** The unfinished removals by id. */
  notes: Map<string, Removal & StoredNote>;
}

export const COMPANY = 'comp_a';

export function createMemoryRemovals(): MemoryRemovals {
  const tree = {
    projects: new Set<string>(),
    apps: new Map<string, Owned>(),
    webhooks: new Map<string, Owned>(),
    pending: new Map<string, string>(),
    notes: new Map<string, Removal & StoredNote>(),
  };
  return { ...tree, store: storeOf(tree) };
}

/** Creates two projects. The first has two apps with a webhook each, and a global webhook. */
export function createSampleTree(): MemoryRemovals {
  const tree = createMemoryRemovals();
  for (const id of ['proj_1', 'proj_2']) tree.projects.add(id);
  for (const n of [1, 2, 3]) {
    const [appId, webhookId] = [`app_${n}`, `wh_${n}`];
    const projectId = n === 3 ? 'proj_2' : 'proj_1';
    tree.apps.set(appId, { projectId });
    tree.webhooks.set(webhookId, { projectId, appId });
    tree.pending.set(`dlv_of_${webhookId}`, webhookId);
  }
  tree.webhooks.set('wh_global', { projectId: 'proj_1', appId: null });
  tree.pending.set('dlv_of_wh_global', 'wh_global');
  return tree;
}

/** Returns everything that has not been removed. */
export function remainingIn({ projects, apps, webhooks, pending, notes }: MemoryRemovals) {
  return {
    projects: [...projects],
    apps: [...apps.keys()],
    webhooks: [...webhooks.keys()],
    pending: [...pending.values()],
    notes: notes.size,
  };
}

/** What remains of the sample tree after the first project was removed with everything under it. */
export const WITHOUT_THE_FIRST_PROJECT: ReturnType<typeof remainingIn> = {
  projects: ['proj_2'],
  apps: ['app_3'],
  webhooks: ['wh_3'],
  pending: ['wh_3'],
  notes: 0,
};

function storeOf(tree: Omit<MemoryRemovals, 'store'>): RemovalStore {
  const { projects, apps, webhooks, pending, notes } = tree;
  const done = (work: () => unknown): Promise<void> => Promise.resolve(void work());
  const roots = { project: projects, app: apps, webhook: webhooks };
  const idsOf = (found: ReadonlyMap<string, Owned>, isUnder: (owned: Owned) => boolean) =>
    [...found].filter(([, owned]) => isUnder(owned)).map(([id]) => id);
  const removeFrom = (found: Map<string, Owned>, ids: readonly string[]): Promise<void> =>
    done(() => ids.map((id) => found.delete(id)));
  const claimed = createMemoryNotes({
    all: notes,
    change: (note, changes) => Object.assign(note, changes),
    toNote: ({ id, companyId, kind, rootId }) => ({ id, companyId, kind, rootId }),
  });
  return {
    ...asyncNotes(claimed),
    insert: (removal) => done(() => notes.set(removal.id, { ...removal })),
    isRunning: ({ id }) => Promise.resolve(notes.has(id)),
    finish: ({ id }) => done(() => notes.delete(id)),
    hasRoot: ({ companyId, kind, rootId }) =>
      Promise.resolve(companyId === COMPANY && roots[kind].has(rootId)),
    removeRoot: ({ companyId, kind, rootId }) =>
      Promise.resolve(companyId === COMPANY && roots[kind].delete(rootId)),
    removeCatalogue: () => Promise.resolve(0),
    appsUnder({ companyId, kind, rootId }, limit) {
      const isProject = companyId === COMPANY && kind === 'project';
      const found = isProject ? idsOf(apps, (app) => app.projectId === rootId) : [];
      return Promise.resolve(found.slice(0, limit));
    },
    webhooksUnder({ companyId, kind, rootId }, limit) {
      const owner = kind === 'project' ? 'projectId' : 'appId';
      const hasNone = companyId !== COMPANY || kind === 'webhook';
      const found = hasNone ? [] : idsOf(webhooks, (each) => each[owner] === rootId);
      return Promise.resolve(found.slice(0, limit));
    },
    removeApps: (companyId, ids) => removeFrom(apps, companyId === COMPANY ? ids : []),
    removeWebhooks: (companyId, ids) => removeFrom(webhooks, companyId === COMPANY ? ids : []),
    cancelPending(companyId, ids, { limit }) {
      const own = companyId === COMPANY ? [...pending] : [];
      const found = own.filter(([, webhookId]) => ids.includes(webhookId));
      const step = found.slice(0, limit);
      for (const [id] of step) pending.delete(id);
      return Promise.resolve(step.length);
    },
  };
}
