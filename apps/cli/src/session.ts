import manifest from '../package.json' with { type: 'json' };
import { confirm, isCancel } from '@clack/prompts';
import { ConnectionError, NotFoundError, Posthorn, type PosthornOptions } from '@posthorn/client';
import { type FieldRule, MASK, WEBHOOK_RULES } from '@posthorn/client/rules';
import { addAbortSignal, type Readable, type Writable } from 'node:stream';
import { CommandFailure, EXIT, Interrupted, UsageFailure } from './failures.ts';
import { textOf } from './files.ts';
import { Output, type OutputStream } from './output.ts';
import { type Credentials, findCredentials, findProject } from './profiles.ts';
import { rawFieldsOf } from './send/read-lines.ts';

/** Everything outside the process that commands use. Tests pass their own. */
export interface World {
  env: Readonly<Record<string, string | undefined>>;
  /** The working directory. */
  folder: string;
  homeFolder: string;
  stdin: Readable & { isTTY?: boolean };
  stdout: OutputStream;
  stderr: OutputStream;
  /** Opens an address in the browser of the user. Resolves with false where none can be started. */
  browse: (url: string) => Promise<boolean>;
  /** Ends the command with its reason. */
  signal: AbortSignal;
}

/** The options of every command. */
export interface GlobalOptions {
  apiUrl?: string | undefined;
  profile?: string | undefined;
  json?: boolean | undefined;
  quiet?: boolean | undefined;
  dryRun?: boolean | undefined;
  yes?: boolean | undefined;
  verbose?: boolean | undefined;
}

interface ConnectOptions {
  isInterruptible?: boolean;
  sendsDryRuns?: boolean;
}

interface RawRequest {
  method: string;
  path: string;
  /** A JSON object. */
  body: string | undefined;
  headers: readonly [name: string, value: string][];
}

interface RawAnswer {
  status: number;
  text: string;
}

/** What operators see of a command in the logs of a proxy before the API. */
const USER_AGENT = `posthorn-cli/${manifest.version}`;

/** Longer than the API works on anything. */
const REQUEST_TIMEOUT_MS = 60_000;

/** A project and an app have this uid. */
const SHARED_APP = 'uid:cli-listen';

/** `--dry-run` printed the request that would have been made. */
export class DryRunEnd extends CommandFailure {
  override readonly name = 'DryRunEnd';

  constructor() {
    super('dry run', EXIT.ok);
  }
}

/** What the action of one command works with: the API, the output, and questions. */
export class Session {
  readonly world: World;
  readonly #readOptions: () => GlobalOptions;
  #output: Output | null = null;
  #api: Posthorn | null = null;
  #credentials: Credentials | null = null;
  #hasNotedApp = false;
  /** Ends every call once a dry run has printed its request, or the API key is missing: retries and parallel calls would print more. */
  readonly #end = new AbortController();
  /** Why the client of the command has no credentials. */
  #missing: UsageFailure | null = null;

  /** The options are read once an action runs. */
  constructor(world: World, readOptions: () => GlobalOptions) {
    this.world = world;
    this.#readOptions = readOptions;
  }

  get options(): GlobalOptions {
    return this.#readOptions();
  }

  get output(): Output {
    this.#output ??= new Output(this.world, this.world.env, this.options);
    return this.#output;
  }

  /** Where the API is, and the key. Throws a SettingsFailure when nobody is logged in. */
  get credentials(): Credentials {
    this.#credentials ??= findCredentials(this.world, this.options);
    return this.#credentials;
  }

  /** Throws a SettingsFailure when nobody is logged in, for a command that reports the failure of each request by itself. */
  requireCredentials(): void {
    this.#credentials ??= this.credentials;
  }

  /** Without credentials, each request fails with what is missing: a wrong use of the command is reported before it. */
  get api(): Posthorn {
    this.#api ??= this.connect(this.#credentialsOrNone());
    return this.#api;
  }

  #credentialsOrNone(): { url: string; apiKey: string } {
    try {
      return this.credentials;
    } catch (error) {
      if (!(error instanceof UsageFailure)) throw error;
      this.#missing = error;
      return { url: 'http://localhost', apiKey: 'none' };
    }
  }

  /**
   * Returns a client of another installation or key than those of the command, or one whose calls go on after Ctrl-C: a
   * command that cleans up needs it. `sendsDryRuns`: with `--dry-run` its requests are sent, because they say so themselves.
   */
  connect(
    { url, apiKey }: { url: string; apiKey: string },
    { isInterruptible = true, sendsDryRuns = false }: ConnectOptions = {},
  ): Posthorn {
    const { verbose } = this.options;
    return new Posthorn({
      baseUrl: url,
      apiKey,
      headers: { 'user-agent': USER_AGENT },
      signal: AbortSignal.any([this.#end.signal, ...(isInterruptible ? [this.world.signal] : [])]),
      fetch: (address, init) => this.#fetch(address, init, sendsDryRuns),
      ...(verbose ? { logger: this.#logger() } : {}),
    } satisfies PosthornOptions);
  }

  /** Makes a request as it is given, once, and returns the answer whatever its status is. `path` is below /api/v1. */
  async request({ method, path, body, headers }: RawRequest): Promise<RawAnswer> {
    const { url, apiKey } = this.credentials;
    const { signal } = this.world;
    const hasAgent = headers.some(([name]) => name.toLowerCase() === 'user-agent');
    try {
      const response = await this.#fetch(`${url.replace(/\/+$/, '')}/api/v1${path}`, {
        method,
        headers: [
          ['authorization', `Bearer ${apiKey}`],
          ...(hasAgent ? [] : [['user-agent', USER_AGENT] as const]),
          ...(body === undefined ? [] : [['content-type', 'application/json'] as const]),
          ...headers,
        ] as [string, string][],
        ...(body !== undefined && { body }),
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]),
      });
      const text = await response.text();
      if (this.options.verbose) this.output.note(`${method} ${path}: ${response.status}`);
      return { status: response.status, text };
    } catch (error) {
      if (signal.aborted || error instanceof ConnectionError) throw error;
      throw new ConnectionError(`Cannot connect, or the answer broke off: ${url}`, {
        cause: error,
      });
    }
  }

  /**
   * The app of `--app`, else that of the project's configuration, which a note names; undefined when neither has one.
   */
  appOf(given: string | undefined): string | undefined {
    if (given !== undefined) return given;
    const project = findProject(this.world);
    const app = project?.config.app ?? undefined;
    if (project && app !== undefined && !this.#hasNotedApp) {
      this.#hasNotedApp = true;
      this.output.note(`of app ${app} (from ${project.path})`);
    }
    return app;
  }

  /**
   * The app of `appOf`, else the app `cli-listen` in the project of the same uid, which `listen` and `message send`
   * share. It is created when it is missing.
   */
  async appOrShared(given: string | undefined): Promise<string> {
    const app = this.appOf(given);
    if (app !== undefined) return app;
    try {
      return (await this.api.apps.get(SHARED_APP)).id;
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
    }
    // Two commands may do this at once: an upsert has the same result for both.
    const name = 'posthorn listen';
    await this.api.projects.update(SHARED_APP, { name }, { upsert: true });
    const fields = { name, projectId: SHARED_APP };
    return (await this.api.apps.update(SHARED_APP, fields, { upsert: true })).id;
  }

  /** Asks on a terminal before something is destroyed. Elsewhere `--yes` is needed. */
  async confirm(question: string): Promise<void> {
    if (this.options.yes || this.options.dryRun) return;
    if (!this.isTerminal) throw new UsageFailure(`${question} Repeat the command with --yes`);
    const answer = await confirm({
      message: question,
      initialValue: false,
      ...this.promptStreams,
    });
    if (isCancel(answer)) throw new Interrupted();
    if (!answer) throw new CommandFailure('Nothing was changed');
  }

  /** Where questions are asked. */
  get promptStreams(): { input: Readable; output: Writable; signal: AbortSignal } {
    const { stdin, stderr, signal } = this.world;
    // Questions are asked on a terminal only, and it is a whole stream. Tests have none.
    return { input: stdin, output: stderr as unknown as Writable, signal };
  }

  /** Whether a person can be asked. */
  get isTerminal(): boolean {
    return this.world.stdin.isTTY === true && this.world.stderr.isTTY === true;
  }

  /** Reads standard input to its end, without a byte-order mark. Throws a UsageFailure when it is not UTF-8. */
  async readStdin(): Promise<string> {
    return textOf(await this.readStdinBytes(), 'Standard input');
  }

  async readStdinBytes(): Promise<Buffer> {
    const { stdin, signal } = this.world;
    const chunks: Buffer[] = [];
    // A terminal has no end of its own: Ctrl-C must end the reading.
    for await (const chunk of addAbortSignal(signal, stdin)) {
      chunks.push(Buffer.from(chunk as Uint8Array));
    }
    return Buffer.concat(chunks);
  }

  /**
   * Runs a command that watches until Ctrl-C, which is its success. `watch` returns, or throws, once the signal of the
   * world is aborted.
   */
  async watch(watch: () => Promise<void>): Promise<void> {
    const { signal } = this.world;
    try {
      await watch();
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async #fetch(url: string, init: RequestInit, sendsDryRuns = false): Promise<Response> {
    // Another call, which began at the same time, has ended the command.
    this.#end.signal.throwIfAborted();
    if (this.#missing) return this.#endWith(this.#missing);
    const method = init.method ?? 'GET';
    if (this.options.dryRun && method !== 'GET' && !sendsDryRuns) {
      const body = typeof init.body === 'string' ? { body: withoutSecrets(init.body) } : {};
      this.output.request({ method, url, ...body });
      return this.#endWith(new DryRunEnd());
    }
    return fetch(url, init);
  }

  #endWith(failure: CommandFailure): never {
    // As the client wraps what `fetch` throws.
    this.#end.abort(new ConnectionError(failure.message, { cause: failure }));
    throw this.#end.signal.reason;
  }

  #logger(): { debug: (text: string) => void; warn: (text: string) => void } {
    const print = (text: string): void => {
      this.output.note(text);
    };
    return { debug: print, warn: print };
  }
}

export const isSecret = (name: string): boolean =>
  Object.entries<FieldRule>(WEBHOOK_RULES).some(
    ([field, { type }]) => field === name && type === 'secret',
  );

/**
 * Returns the body of a request byte for byte, but with a mask for secrets. Custom headers and the key of a certificate
 * count as secrets: the name of a header does not say whether its value is a credential.
 */
export function withoutSecrets(json: string): string {
  const fields = rawFieldsOf(json).map(([name, text]) => {
    const value = JSON.parse(text) as unknown;
    const shown = shownValue(name, value);
    return `${JSON.stringify(name)}:${shown === value ? text : JSON.stringify(shown)}`;
  });
  return `{${fields.join()}}`;
}

function shownValue(name: string, value: unknown): unknown {
  if (isSecret(name)) return typeof value === 'string' ? MASK : value;
  if (name === 'customHeaders' && Array.isArray(value)) {
    return value.map((header: object) => ({ ...header, value: MASK }));
  }
  const isTls = name === 'tls' && typeof value === 'object' && value !== null && 'key' in value;
  return isTls ? { ...value, key: MASK } : value;
}
