import { ApiError, NotFoundError, type Posthorn, type WebhookWithAuth } from '@posthorn/client';
import { createHash, createHmac } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname, networkInterfaces, platform } from 'node:os';

/*
 * The webhook of one `listen`. It is a lease: it counts for five minutes and is renewed each minute. A `listen` that was
 * killed leaves it behind; the next start on the same host deletes it, and any start when it has expired.
 */

export const LEASE_MS = 5 * 60_000;
export const RENEW_EVERY_MS = 60_000;
const NAME_START = 'posthorn listen ';
const MAX_NAME_CHARS = 100;
/** Of what others have left, this many are looked at in one start. */
const MAX_EXAMINED = 100;

/** Who holds a lease. */
export interface Holder {
  /** The name of the machine, and what tells it from others of this name. */
  host: string;
  pid: number;
}

type Metadata = Readonly<Record<string, string>>;

/** What tells machines of one name apart. Empty where the system has no such thing. */
export interface Machine {
  platform: string;
  /** Another one for each start of a kernel: containers on two machines may have the same name and addresses. */
  bootId: string;
  /** A container numbers its processes itself. */
  processNamespace: string;
  /** Of the network. */
  addresses: readonly string[];
}

export function holderOfThisProcess(machine = thisMachine()): Holder {
  return { host: `${hostname()} ${hashOf(machine)}`, pid: process.pid };
}

/**
 * Two laptops as they came, containers, and Windows and its Linux differ. A stored random id would not do: containers of
 * one image, or with one home, have the same. When the hash changes, such as with a VPN or a restart of the machine, what
 * was left behind goes when it has expired.
 */
function hashOf({ platform, bootId, processNamespace, addresses }: Machine): string {
  const parts = [platform, bootId, processNamespace, ...new Set([...addresses].sort())];
  return createHash('sha256').update(parts.join()).digest('hex').slice(0, 16);
}

function thisMachine(): Machine {
  const interfaces = Object.values(networkInterfaces());
  return {
    platform: platform(),
    bootId: textOrNone(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    processNamespace: textOrNone(() => readlinkSync('/proc/self/ns/pid')),
    addresses: interfaces.flatMap((each = []) => each.map(({ mac }) => mac)),
  };
}

function textOrNone(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}

export function metadataOf({ host, pid }: Holder, nowMs: number): Record<string, string> {
  const expiresAt = new Date(nowMs + LEASE_MS).toISOString();
  return { posthornListen: 'true', host, pid: String(pid), expiresAt };
}

/** Returns whether nobody holds the lease any more, so that it may be deleted. */
export function isAbandoned(
  metadata: Metadata,
  self: Holder,
  { nowMs, isRunning }: { nowMs: number; isRunning: (pid: number) => boolean },
): boolean {
  if (metadata.posthornListen !== 'true') return false;
  const { host, pid, expiresAt = '' } = metadata;
  // A time that nobody can read does not count as expired.
  if (Date.parse(expiresAt) <= nowMs) return true;
  // The number of a process that is gone may be this one's by now.
  return host === self.host && (Number(pid) === self.pid || !isRunning(Number(pid)));
}

export function isRunning(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it belongs to somebody else.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/**
 * Derives the secret from the API key, which has 32 random bytes: a receiver that has once been given the secret keeps it
 * over each start of `listen`, and nothing is stored.
 */
export function secretOf(apiKey: string): string {
  const bytes = createHmac('sha256', apiKey).update('posthorn listen').digest('base64');
  return `whsec_${bytes}`;
}

export interface LeaseOptions {
  /** Its calls must not end with Ctrl-C: the webhook is deleted then. */
  api: Posthorn;
  holder: Holder;
  url: string;
  secret: string;
  eventTypes: readonly string[];
  /** Returns the app, which is created again when somebody has deleted it. */
  findApp: () => Promise<string>;
  isRunning: (pid: number) => boolean;
  /** Ends what only reads. */
  signal: AbortSignal;
  note: (text: string) => void;
}

/** Ctrl-C waits for a renewal and the deletion: somebody waits for the prompt. */
const SHORT_CALL = { timeoutMs: 5_000, maxRetries: 1 };

export class WebhookLease {
  readonly #options: LeaseOptions;
  #webhook: WebhookWithAuth | null = null;
  #appId = '';
  #secrets: readonly string[];
  /** The clock of the API less that of this machine. */
  #skewMs = 0;
  #hasFailed = false;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#secrets = [options.secret];
  }

  get webhookId(): string {
    return this.#webhook?.id ?? '';
  }

  get appId(): string {
    return this.#appId;
  }

  /** What may have signed a delivery. Somebody may rotate the secret meanwhile. */
  get secrets(): readonly string[] {
    return this.#secrets;
  }

  /** The time by the clock of the API. */
  nowMs(): number {
    return Date.now() + this.#skewMs;
  }

  /** Deletes what others have left, and creates the webhook. */
  async open(): Promise<void> {
    const { api, signal } = this.#options;
    const { response } = await api.me({ signal }).withResponse();
    this.#readClock(response);
    await this.#deleteAbandoned();
    await this.#create();
  }

  /** Extends the lease. Creates the webhook again when somebody has deleted it. Never rejects. */
  async renew(): Promise<void> {
    const { api, holder, note } = this.#options;
    try {
      const metadata = metadataOf(holder, this.nowMs());
      const renewal = api.webhooks.update(this.webhookId, { metadata }, SHORT_CALL);
      const { data, response } = await renewal.withResponse();
      this.#readClock(response);
      this.#addSecret(data.secret);
      if (this.#hasFailed) note('The API answers again.');
      this.#hasFailed = false;
    } catch (error) {
      if (error instanceof NotFoundError) await this.#restore();
      else this.#noteFailure(error);
    }
  }

  /** Deletes the webhook. Never rejects. */
  async close(): Promise<void> {
    if (!this.#webhook) return;
    const { id } = this.#webhook;
    this.#webhook = null;
    try {
      await this.#options.api.webhooks.delete(id, SHORT_CALL);
    } catch (error) {
      if (error instanceof NotFoundError) return;
      const reason = messageOf(error);
      this.#options.note(
        `The webhook ${id} could not be deleted (${reason}). The next posthorn listen on this host deletes it.`,
      );
    }
  }

  async #create(): Promise<void> {
    const { api, holder, url, secret, eventTypes, findApp } = this.#options;
    this.#appId = await findApp();
    this.#webhook = await api.webhooks.create({
      url,
      appId: this.#appId,
      name: `${NAME_START}${hostname()} ${holder.pid}`.slice(0, MAX_NAME_CHARS),
      secret,
      eventTypes: [...eventTypes],
      metadata: metadataOf(holder, this.nowMs()),
    });
  }

  async #restore(): Promise<void> {
    try {
      const before = this.webhookId;
      await this.#create();
      this.#options.note(
        `Somebody has deleted the webhook ${before}: it is ${this.webhookId} now.`,
      );
    } catch (error) {
      this.#noteFailure(error);
    }
  }

  #noteFailure(error: unknown): void {
    if (!this.#hasFailed) {
      const seconds = RENEW_EVERY_MS / 1_000;
      this.#options.note(
        `The webhook could not be renewed (${messageOf(error)}). The next try is in ${seconds} s.`,
      );
    }
    this.#hasFailed = true;
  }

  /** A key without the right to see secrets gets stars. */
  #addSecret(secret: string): void {
    if (!secret.startsWith('whsec_') || this.#secrets.includes(secret)) return;
    this.#secrets = [secret, ...this.#secrets].slice(0, 2);
  }

  #readClock({ headers }: Response): void {
    const dateMs = Date.parse(headers.get('date') ?? '');
    if (!Number.isNaN(dateMs)) this.#skewMs = dateMs - Date.now();
  }

  async #deleteAbandoned(): Promise<void> {
    const { api, signal, note } = this.#options;
    let examined = 0;
    try {
      for await (const { id } of api.webhooks.find({ text: NAME_START }, { signal })) {
        examined += 1;
        if (examined > MAX_EXAMINED) break;
        await this.#deleteIfAbandoned(id);
      }
    } catch (error) {
      // A key that may not list webhooks can still listen.
      if (!(error instanceof ApiError)) throw error;
      note(`The webhooks of earlier starts were not looked for: ${error.message}`);
    }
  }

  async #deleteIfAbandoned(id: string): Promise<void> {
    const { api, holder, signal, isRunning } = this.#options;
    try {
      const { metadata } = await api.webhooks.get(id, { secrets: false }, { signal });
      const now = { nowMs: this.nowMs(), isRunning };
      if (isAbandoned(metadata, holder, now)) await api.webhooks.delete(id);
    } catch (error) {
      // Another start has deleted it at the same time.
      if (!(error instanceof NotFoundError)) throw error;
    }
  }
}

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
