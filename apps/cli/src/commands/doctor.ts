import type { Command } from '@commander-js/extra-typings';
import { ApiError, type Me, type Posthorn } from '@posthorn/client';
import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { connect, type DetailedPeerCertificate, type TLSSocket } from 'node:tls';
import manifest from '../../package.json' with { type: 'json' };
import { CheckFailure } from '../failures.ts';
import { escapeControls } from '../output.ts';
import type { Session } from '../session.ts';

export interface Check {
  name: string;
  status: 'ok' | 'warn' | 'fail';
  message: string;
}

type Result = Omit<Check, 'name'>;

const ok = (message: string): Result => ({ status: 'ok', message });
const warn = (message: string): Result => ({ status: 'warn', message });
const fail = (message: string): Result => ({ status: 'fail', message });

const DAY_MS = 86_400_000;
const CERTIFICATE_WARN_DAYS = 14;
const KEY_WARN_DAYS = 7;
const SKEW_WARN_MS = 5_000;
/** Receivers refuse signatures that are five minutes away. A clock that is a minute off runs freely. */
const SKEW_FAIL_MS = 60_000;
const CONNECT_TIMEOUT_MS = 10_000;
const TEST_TIMEOUT_MS = 30_000;
const TEST_POLL_MS = 500;
const MAX_CHAIN = 10;

/** `doctor`. */
export function addDoctorCommand(program: Command, session: Session): void {
  program
    .command('doctor')
    .description('check the way to the API, the key and the clock, and with --webhook an endpoint')
    .option('--webhook <id>', 'check its address and its last attempts, and send a test message')
    .option('--no-test', 'send no test message')
    .addHelpText('after', '\nExit code 5 when a check fails.')
    .action(async ({ webhook, test }) => {
      const checks = await examine(session, webhook, test);
      const failed = checks.filter(({ status }) => status === 'fail');
      report(session, checks, failed.length === 0);
      if (failed.length > 0) throw new CheckFailure(`failed: ${failed.map(nameOf).join(', ')}`);
    });
}

const nameOf = ({ name }: Check): string => name;

function report({ output }: Session, checks: readonly Check[], isOk: boolean): void {
  if (output.isJson) {
    output.value({ ok: isOk, checks });
    return;
  }
  const { green, yellow, red } = output.colours;
  const colour = { ok: green, warn: yellow, fail: red };
  for (const { name, status, message } of checks) {
    const start = `${colour[status](status.padEnd(4))}  ${name.padEnd(12)}`;
    output.raw(`${start}  ${escapeControls(message)}\n`);
  }
}

/** Later checks are left out where they cannot be made. */
async function examine(
  session: Session,
  webhookId: string | undefined,
  isTested: boolean,
): Promise<Check[]> {
  const url = new URL(session.credentials.url);
  const checks: Check[] = [{ name: 'address', ...(await checkAddress(url)) }];
  checks.push({ name: 'tls', ...(await checkTls(url)) });
  const { apiChecks, isAnswering } = await checkApi(session.api, session.credentials.source);
  checks.push(...apiChecks);
  if (webhookId !== undefined && isAnswering) {
    checks.push(...(await checkWebhook(session, webhookId, isTested)));
  }
  return checks;
}

async function checkAddress({ hostname }: URL): Promise<Result> {
  try {
    const addresses = await addressesOf(hostname);
    return ok(`${hostname} is ${addresses.join(', ')}`);
  } catch (error) {
    return fail(`${hostname} has no address: ${messageOf(error)}`);
  }
}

async function addressesOf(hostname: string): Promise<string[]> {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host)) return [host];
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

async function checkTls(url: URL): Promise<Result> {
  if (url.protocol === 'http:') {
    return isPublic((await addressesOf(url.hostname).catch(() => []))[0] ?? '')
      ? warn('The address is http: everyone on the way can read the API key')
      : ok('not used: the address is http of this machine or network');
  }
  try {
    return judgeCertificates(await handshake(url), Date.now());
  } catch (error) {
    return fail(messageOf(error));
  }
}

export interface Handshake {
  /** Why Node does not trust the chain; null when it does. */
  problem: string | null;
  /** When each certificate of the chain ends, that of the host first. */
  ends: readonly number[];
}

function handshake({ hostname, port }: URL): Promise<Handshake> {
  const host = hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: Number(port || 443),
      ...(isIP(host) ? {} : { servername: host }),
      // The chain is judged here, so that the reason and the days can be told.
      rejectUnauthorized: false,
    });
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => {
      socket.destroy(new Error(`no TLS within ${CONNECT_TIMEOUT_MS / 1_000} s`));
    });
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      const problem = socket.authorized ? null : String(socket.authorizationError);
      resolve({ problem, ends: endsOf(socket) });
      socket.destroy();
    });
  });
}

/** Of the certificates that the server sent, that of the host first. */
function endsOf(socket: TLSSocket): number[] {
  const ends: number[] = [];
  let last: DetailedPeerCertificate | undefined;
  let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  // A root is its own issuer.
  while (next && next !== last && ends.length < MAX_CHAIN) {
    ends.push(Date.parse(next.valid_to));
    last = next;
    next = next.issuerCertificate as DetailedPeerCertificate | undefined;
  }
  return ends;
}

export function judgeCertificates({ problem, ends }: Handshake, nowMs: number): Result {
  if (problem !== null) return fail(`The certificate is not trusted: ${problem}`);
  const days = Math.floor((Math.min(...ends) - nowMs) / DAY_MS);
  const message = `The chain of ${ends.length} certificates is valid for ${days} more days`;
  return days < CERTIFICATE_WARN_DAYS ? warn(message) : ok(message);
}

async function checkApi(
  api: Posthorn,
  source: string,
): Promise<{ apiChecks: Check[]; isAnswering: boolean }> {
  const startedMs = Date.now();
  try {
    const { data: me, response } = await api.me().withResponse();
    const halfwayMs = (startedMs + Date.now()) / 2;
    const date = response.headers.get('date');
    return {
      isAnswering: true,
      apiChecks: [
        { name: 'key', ...judgeKey(me, source, Date.now()) },
        { name: 'scopes', ...judgeScopes(me) },
        { name: 'clock', ...judgeClock(date, halfwayMs) },
        { name: 'version', ...judgeVersions(me.serverVersion, manifest.version) },
      ],
    };
  } catch (error) {
    // The API has answered, and refused the key.
    const name = error instanceof ApiError && error.status < 500 ? 'key' : 'api';
    const hint = name === 'key' ? ` (the key is from ${source})` : '';
    return { isAnswering: false, apiChecks: [{ name, ...fail(`${messageOf(error)}${hint}`) }] };
  }
}

export function judgeKey({ keyName, companyName, expiresAt }: Me, source: string, nowMs: number) {
  const message = `${keyName} of ${companyName}, from ${source}`;
  if (expiresAt === null) return ok(message);
  const days = Math.floor((Date.parse(expiresAt) - nowMs) / DAY_MS);
  const text = `${message}, expires in ${days} days`;
  return days < KEY_WARN_DAYS ? warn(text) : ok(text);
}

function judgeScopes({ scopes, appId }: Me): Result {
  return ok(`${scopes.join(', ')}${appId === null ? '' : `, only for the app ${appId}`}`);
}

/** `halfwayMs` is between request and answer, by the clock of this machine. */
export function judgeClock(date: string | null, halfwayMs: number): Result {
  const dateMs = Date.parse(date ?? '');
  if (Number.isNaN(dateMs)) return warn('The answer has no Date, so the clock is not known');
  // The header has whole seconds, rounded down.
  const skewMs = halfwayMs - (dateMs + 500);
  const seconds = Math.abs(skewMs / 1_000).toFixed(1);
  const message = `This machine is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} the server`;
  if (Math.abs(skewMs) > SKEW_FAIL_MS)
    return fail(`${message}: receivers refuse signatures beyond 300 s`);
  return Math.abs(skewMs) > SKEW_WARN_MS ? warn(message) : ok(message);
}

export function judgeVersions(server: string, client: string): Result {
  const message = `The server is ${server}, this command ${client}`;
  const partsOf = (version: string): string => version.split('.').slice(0, 2).join('.');
  return partsOf(server) === partsOf(client) ? ok(message) : warn(message);
}

async function checkWebhook(
  session: Session,
  webhookId: string,
  isTested: boolean,
): Promise<Check[]> {
  const { api } = session;
  try {
    const webhook = await api.webhooks.get(webhookId, { secrets: false });
    const state = webhook.disabled
      ? fail('It is disabled: deliveries are cancelled')
      : ok('It is enabled');
    const checks: Check[] = [
      { name: 'webhook', ...state },
      { name: 'endpoint', ...(await checkEndpoint(webhook.url, session.credentials.url)) },
      { name: 'attempts', ...(await checkAttempts(api, webhookId)) },
    ];
    if (isTested) checks.push({ name: 'test', ...(await sendTest(session, webhookId)) });
    return checks;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return [{ name: 'webhook', ...fail(error.message) }];
  }
}

async function checkEndpoint(url: string, baseUrl: string): Promise<Result> {
  const { hostname, origin } = new URL(url);
  try {
    const addresses = await addressesOf(hostname);
    const message = `${origin} is ${addresses.join(', ')}`;
    const hidden = addresses.filter((address) => !isPublic(address));
    const gateway = await addressesOf(new URL(baseUrl).hostname);
    // A gateway on this machine or network may deliver there.
    if (hidden.length === 0 || !gateway.every(isPublic)) return ok(message);
    return warn(`${message}: ${hidden.join(', ')} is not public, seen from here`);
  } catch (error) {
    return warn(`${hostname} has no address, seen from here: ${messageOf(error)}`);
  }
}

async function checkAttempts(api: Posthorn, webhookId: string): Promise<Result> {
  const { circuit, lastAttemptAt, successRate, backlog } = await api.webhooks.health(webhookId);
  if (lastAttemptAt === null) return ok('None was made yet');
  const percent = Math.round((successRate ?? 0) * 100);
  const message = `${percent} % of the newest succeeded, the last one at ${lastAttemptAt}; ${backlog} deliveries wait; the circuit is ${circuit}`;
  if (circuit === 'open') return fail(`${message}: attempts kept failing, and further ones wait`);
  return percent < 90 || circuit === 'half_open' ? warn(message) : ok(message);
}

async function sendTest(session: Session, webhookId: string): Promise<Result> {
  const { api, world } = session;
  const { id } = await api.webhooks.test(webhookId);
  const endMs = performance.now() + TEST_TIMEOUT_MS;
  for (;;) {
    const { attempts, status } = await api.deliveries.get(id);
    const [attempt] = attempts;
    if (attempt) {
      const result = attempt.statusCode === null ? attempt.outcome : String(attempt.statusCode);
      const message = `The endpoint answered a test message: ${result}`;
      return attempt.outcome === 'success' ? ok(message) : fail(`${message} (delivery ${id})`);
    }
    if (performance.now() > endMs)
      return fail(`The delivery ${id} is ${status}, without an attempt`);
    await wait(TEST_POLL_MS, undefined, { signal: world.signal });
  }
}

/** Of this machine, of private networks, and reserved (RFC 6890). */
const NOT_PUBLIC = new BlockList();
// prettier-ignore
for (const range of [
  '0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12',
  '192.0.0.0/24', '192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/3',
  '::/127', 'fc00::/7', 'fe80::/10', 'ff00::/8',
]) {
  const [address = '', bits] = range.split('/');
  NOT_PUBLIC.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

export const isPublic = (address: string): boolean =>
  isIP(address) !== 0 && !NOT_PUBLIC.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
