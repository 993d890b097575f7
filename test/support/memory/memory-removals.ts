import type { Removal, RemovalStore } from '@posthorn/platform/mongo/removals.ts';

interface Owned {
  projectId: string;
  appId?: string | null;
}

/** A company's tree, and what the store of removals promises, in memory. */
export interface MemoryRemovals {
  store: RemovalStore;
  projects: Set<string>;
  apps: Map<string, Owned>;
  webhooks: Map<string, Owned>;
  /** Webhook of each pending delivery. */
  pending: Map<string, string>;
  notes: Map<string, Removal>;
}

function createMemoryRemovals(): MemoryRemovals {
  const tree = {
    projects: new Set<string>(),
    apps: new Map<string, Owned>(),
    webhooks: new Map<string, Owned>(),
    pending: new Map<string, string>(),
    notes: new Map<string, Removal>(),
  };
  return { ...tree, store: storeOf(tree) };
}

/** Two projects; the first has two apps with a webhook each, and a global webhook. */
export function plantTree(): MemoryRemovals {
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

/** Everything that is still there. */
export function leftOf({ projects, apps, webhooks, pending, notes }: MemoryRemovals) {
  return {
    projects: [...projects],
    apps: [...apps.keys()],
    webhooks: [...webhooks.keys()],
    pending: [...pending.values()],
    notes: notes.size,
  };
}

/** The planted tree without its first project and all that lies under it. */
export const WITHOUT_THE_FIRST_PROJECT: ReturnType<typeof leftOf> = {
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
  return {
    insert: (removal) => done(() => notes.set(removal._id, removal)),
    list(afterId, limit) {
      const left = [...notes.values()].sort((a, b) => (a._id < b._id ? -1 : 1));
      return Promise.resolve(left.filter(({ _id }) => _id > afterId).slice(0, limit));
    },
    finish: ({ _id }) => done(() => notes.delete(_id)),
    hasRoot: ({ kind, rootId }) => Promise.resolve(roots[kind].has(rootId)),
    removeRoot: ({ kind, rootId }) => Promise.resolve(roots[kind].delete(rootId)),
    appsUnder({ kind, rootId }, limit) {
      const found = kind === 'project' ? idsOf(apps, (app) => app.projectId === rootId) : [];
      return Promise.resolve(found.slice(0, limit));
    },
    webhooksUnder({ kind, rootId }, limit) {
      const owner = kind === 'project' ? 'projectId' : 'appId';
      const found = kind === 'webhook' ? [] : idsOf(webhooks, (each) => each[owner] === rootId);
      return Promise.resolve(found.slice(0, limit));
    },
    removeApps: (_companyId, ids) => removeFrom(apps, ids),
    removeWebhooks: (_companyId, ids) => removeFrom(webhooks, ids),
    cancelPending(_companyId, ids, { limit }) {
      const found = [...pending].filter(([, webhookId]) => ids.includes(webhookId));
      const step = found.slice(0, limit);
      for (const [id] of step) pending.delete(id);
      return Promise.resolve(step.length);
    },
  };
}
