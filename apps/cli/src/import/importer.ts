import {
  AuthenticationError,
  ConnectionError,
  PermissionError,
  type Posthorn,
  TimeoutError,
} from '@posthorn/client';
import { describeFailure, Interrupted } from '../failures.ts';
import { applyPlan, readPresent } from '../plan/adapter.ts';
import type { Document, DocumentOf, Kind } from '../plan/documents.ts';
import { type Change, planChanges, type Present, type PresentObject } from '../plan/plan.ts';
import { importPart, type ImportWebhooks, type MappedEventType, partsOf } from './event-types.ts';
import {
  FINDING_KINDS,
  type Finding,
  type FindingKind,
  inOrder,
  type Mapped,
  type MappedWebhook,
} from './mapping.ts';

/** Webhooks, or apps without any, that are compared and written together. */
const BATCH_SIZE = 50;
/** The objects that the report names for each finding; it counts all. */
const NAMED_OBJECTS = 1_000;
const MAX_GROUPS = 500;

export interface Counts {
  read: number;
  created: number;
  updated: number;
  unchanged: number;
  failed: number;
}

export interface ReportedFinding {
  kind: FindingKind;
  about: string;
  /** Of objects, of which the first ones are named. */
  count: number;
  objects: { object: string; detail?: string }[];
}

/** What came over, or would with `--dry-run`. It has no secrets. */
export interface ImportReport {
  from: string;
  project: string;
  isDryRun: boolean;
  eventTypes: Counts;
  apps: Counts;
  webhooks: Counts;
  findings: ReportedFinding[];
}

export interface ImportOptions {
  api: Posthorn;
  from: string;
  /** An id, or `uid:` and a uid. */
  projectId: string;
  /** Null when it is there already. */
  project: DocumentOf<'Project'> | null;
  isDryRun: boolean;
  /** Into the project, or with `isDryRun` what that would change. */
  importWebhooks: ImportWebhooks;
  onProgress: (report: ImportReport) => void;
}

/** Brings over what a reader yields, in batches: memory does not grow with the number of webhooks. */
export class Importer {
  readonly #options: ImportOptions;
  readonly #report: ImportReport;
  readonly #groups = new Map<string, ReportedFinding>();
  /** Uids of apps that were counted. */
  readonly #apps = new Set<string>();
  #batch = emptyBatch();

  constructor(options: ImportOptions) {
    this.#options = options;
    const { from, projectId: project, isDryRun } = options;
    const counts = { eventTypes: noCounts(), apps: noCounts(), webhooks: noCounts() };
    this.#report = { from, project, isDryRun, ...counts, findings: [] };
  }

  get report(): ImportReport {
    const kinds = Object.keys(FINDING_KINDS);
    const findings = [...this.#groups.values()].toSorted(
      (one, other) => kinds.indexOf(one.kind) - kinds.indexOf(other.kind),
    );
    return { ...this.#report, findings };
  }

  get hasFailures(): boolean {
    return [...this.#groups.values()].some(({ kind }) => kind === 'failed');
  }

  /** What was read before a failure of the reader is written all the same. */
  async run(mapped: AsyncIterable<Mapped>): Promise<void> {
    try {
      for await (const each of mapped) {
        this.#add(each);
        const { eventTypes, apps, webhooks } = this.#batch;
        if (eventTypes.size + apps.size + webhooks.size >= BATCH_SIZE) await this.#flush();
      }
    } catch (error) {
      // Posthorn itself cannot be reached, or the user ended the command.
      if (isOfAll(error) || error instanceof Interrupted) throw error;
      await this.#flush();
      throw error;
    }
    await this.#flush();
  }

  #add(mapped: Mapped): void {
    if (mapped.kind === 'Unmapped') {
      this.#note(mapped.object, mapped.findings);
      return;
    }
    if (mapped.kind === 'EventType') {
      this.#note(mapped.source, mapped.findings);
      this.#batch.eventTypes.set(mapped.name, mapped);
      return;
    }
    this.#note(mapped.document.source, mapped.findings);
    const { apps, webhooks } = this.#batch;
    const app = mapped.kind === 'App' ? mapped.document : mapped.app;
    apps.set(app.uid, app);
    if (mapped.kind === 'Webhook') webhooks.set(`${app.uid} ${mapped.document.source}`, mapped);
  }

  #note(object: string, findings: readonly Finding[]): void {
    for (const { kind, about, detail } of findings) {
      const key = this.#groups.size < MAX_GROUPS ? `${kind} ${about}` : kind;
      const group = this.#groups.get(key) ?? { kind, about, count: 0, objects: [] };
      this.#groups.set(key, group);
      group.count += 1;
      if (group.objects.length >= NAMED_OBJECTS) continue;
      group.objects.push({ object, ...(detail === undefined ? {} : { detail }) });
    }
  }

  async #flush(): Promise<void> {
    const { api, project, isDryRun } = this.#options;
    const { eventTypes, apps } = this.#batch;
    const webhooks = [...this.#batch.webhooks.values()];
    this.#batch = emptyBatch();
    if (eventTypes.size > 0) await this.#flushEventTypes([...eventTypes.values()]);
    if (apps.size === 0) return;
    const owners: Document[] = [...(project ? [project] : []), ...apps.values()];
    const candidates = webhooks.flatMap(({ document, qualifiedUid }) => [
      document,
      { ...document, uid: qualifiedUid },
    ]);
    const present = await readPresent(api, [...owners, ...candidates]);
    const settled = settleAll(webhooks, present);
    this.#noteOtherUids(webhooks, settled);
    const documents = [...owners, ...settled];
    const plan = planChanges(documents, present);
    const changes = new Map(plan.changes.map((change) => [keyOf(change), change]));
    const failures = new Map<string, unknown>();
    if (!isDryRun) {
      for (const { change, error } of await applyPlan(api, plan)) {
        if (isOfAll(error)) throw error;
        if (error !== null) failures.set(keyOf(change), error);
      }
    }
    for (const document of documents) this.#count(document, changes.get(keyOf(document)), failures);
    this.#options.onProgress(this.#report);
  }

  async #flushEventTypes(types: readonly MappedEventType[]): Promise<void> {
    const { api, project, isDryRun, importWebhooks } = this.#options;
    const { eventTypes: counts } = this.#report;
    counts.read += types.length;
    const present = project && (await readPresent(api, [project]));
    if (present?.objects.length === 0 && isDryRun) {
      // The project is made by the import itself.
      counts.created += types.length;
      return;
    }
    if (project && present && !isDryRun) await applyPlan(api, planChanges([project], present));
    for (const part of partsOf(types)) {
      const { imported, failed } = await importPart(part, importWebhooks);
      counts.failed += failed.length;
      for (const { type, finding } of failed) this.#note(type.source, [finding]);
      counts.created += imported?.created ?? 0;
      counts.updated += imported?.updated ?? 0;
    }
    counts.unchanged = counts.read - counts.created - counts.updated - counts.failed;
    this.#options.onProgress(this.#report);
  }

  #noteOtherUids(webhooks: MappedWebhook[], settled: DocumentOf<'Webhook'>[]): void {
    for (const [index, { uid, source }] of settled.entries()) {
      const before = webhooks[index]?.document.uid ?? uid;
      if (uid === before) continue;
      const about = 'uids of webhooks that another app has too: the app is before them';
      this.#note(source, [{ kind: 'changed', about, detail: `${before} → uid:${uid}` }]);
    }
  }

  #count(
    document: Document,
    change: Change | undefined,
    failures: ReadonlyMap<string, unknown>,
  ): void {
    if (document.kind === 'Project') return;
    if (document.kind === 'App' && this.#apps.has(document.uid)) return;
    if (document.kind === 'App') this.#apps.add(document.uid);
    const counts = document.kind === 'App' ? this.#report.apps : this.#report.webhooks;
    counts.read += 1;
    const error = failures.get(keyOf(document));
    const refusal = change?.action === 'refuse' ? change.reason : undefined;
    const detail = error === undefined ? refusal : describeFailure(error).lines.join('; ');
    if (detail !== undefined) {
      counts.failed += 1;
      this.#note(document.source, [{ kind: 'failed', about: 'refused by Posthorn', detail }]);
    } else if (change?.action === 'create') counts.created += 1;
    else if (change?.action === 'update') counts.updated += 1;
    else counts.unchanged += 1;
  }
}

/**
 * Webhooks are kept by what they were read from: a service may list one twice, as for `--only` with an owner given twice.
 * The second one would get a uid of its own, and each message would come twice.
 */
const emptyBatch = () => ({
  eventTypes: new Map<string, MappedEventType>(),
  apps: new Map<string, DocumentOf<'App'>>(),
  webhooks: new Map<string, MappedWebhook>(),
});

const noCounts = (): Counts => ({ read: 0, created: 0, updated: 0, unchanged: 0, failed: 0 });

const keyOf = ({ kind, uid }: { kind: Kind; uid: string }): string => `${kind} ${uid}`;

/** Whether nothing further can be written either. */
function isOfAll(error: unknown): boolean {
  return (
    error instanceof ConnectionError ||
    error instanceof TimeoutError ||
    error instanceof AuthenticationError ||
    error instanceof PermissionError
  );
}

/** Returns the documents of webhooks as they are to be written beside what is there. */
export function settleAll(
  webhooks: readonly MappedWebhook[],
  present: Present,
): DocumentOf<'Webhook'>[] {
  const byUid = new Map(
    present.objects.flatMap((object) =>
      object.kind === 'Webhook' && object.uid !== null ? [[object.uid, object] as const] : [],
    ),
  );
  const taken = new Map<string, string>();
  return webhooks.map((webhook) => {
    const uid = uidFor(webhook, byUid, present, taken);
    taken.set(uid, webhook.app.uid);
    return settle(webhook, uid, byUid.get(uid));
  });
}

/**
 * Webhooks of two apps may have the same uid at the service. The first one keeps it; the other one gets a uid with its app
 * before it, and keeps that in later imports.
 */
function uidFor(
  { document, qualifiedUid, app }: MappedWebhook,
  byUid: ReadonlyMap<string, PresentObject>,
  present: Present,
  taken: ReadonlyMap<string, string>,
): string {
  const appId = present.idOf('App', `uid:${app.uid}`);
  // Another app may have a webhook with this very uid.
  if (byUid.get(qualifiedUid)?.fields.appId === appId) return qualifiedUid;
  const other = byUid.get(document.uid);
  const isOthers = other !== undefined && other.fields.appId !== appId;
  return isOthers || taken.has(document.uid) ? qualifiedUid : document.uid;
}

/** What was decided by hand after the first import stays: whether it is held back, and headers that cannot be read. */
function settle(
  { document, isHeldBack, keptHeaders }: MappedWebhook,
  uid: string,
  there: PresentObject | undefined,
): DocumentOf<'Webhook'> {
  const { disabled, customHeaders } = document.fields;
  const given = new Set(customHeaders?.map(({ key }) => key.toLowerCase()));
  const names = keptHeaders.map((name) => name.toLowerCase());
  const kept = new Set(names.filter((name) => !given.has(name)));
  const headers = (there?.fields.customHeaders ?? []) as { key: string; value: string }[];
  return {
    ...document,
    uid,
    fields: {
      ...document.fields,
      disabled: isHeldBack
        ? there
          ? disabled === true || there.fields.disabled === true
          : true
        : (disabled ?? false),
      customHeaders: inOrder([
        ...(customHeaders ?? []),
        ...headers.filter(({ key }) => kept.has(key.toLowerCase())),
      ]),
    },
  };
}
