import { type Bytes, readBytes } from './read-bytes.ts';
import { VerifyError } from './verify-error.ts';

/** Keys are kept for at least this time, also when `Cache-Control` says less: one request for many deliveries. */
const MIN_KEEP_MS = 60_000;
/** And for no more than this, so that a key that was taken back is not accepted for a year. */
const MAX_KEEP_MS = 86_400_000;
/** Signatures by unknown keys, which anybody can send, ask for the keys again no more often than this. */
const REFETCH_AFTER_MS = 10_000;
/** After a failure. Posthorn's first retry comes after 5 s. */
const RETRY_AFTER_MS = 1_000;
const FETCH_TIMEOUT_MS = 5_000;
/** Posthorn publishes at most two keys, in about 300 bytes (docs/contract.md C16.4). */
const MAX_BYTES = 65_536;
const MAX_KEYS = 16;
/** A receiver has one address of keys, or one for each company that it receives from. */
const MAX_SOURCES = 100;

export interface KeySetOptions {
  /** An https address, or http of this machine. */
  jwksUrl: string;
  fetch: typeof fetch;
  /** Since 1970. */
  nowMs: () => number;
}

/** A key of WebCrypto. The type has another name in each runtime's types. */
export type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

/** The Ed25519 keys of one answer. */
interface KeySet {
  keys: readonly Key[];
  fetchedAtMs: number;
  keepMs: number;
}

interface Source {
  latest: KeySet | null;
  /** The request on its way, which concurrent verifications share. */
  loading: { keySet: Promise<KeySet>; sinceMs: number } | null;
  failure: { error: VerifyError; atMs: number } | null;
}

/** By address, for all verifications of this process. */
const sources = new Map<string, Source>();

/**
 * Calls `isSignedByOne` with the published keys, and once more with newer ones when it returns false: the sender may
 * have a new key. Throws a VerifyError `keys_unavailable` when the keys cannot be read.
 */
export async function isSignedByPublished(
  options: KeySetOptions,
  isSignedByOne: (keys: readonly Key[]) => Promise<boolean>,
): Promise<boolean> {
  const source = sourceOf(options.jwksUrl);
  const now = options.nowMs();
  const { latest } = source;
  const isFresh = latest !== null && isWithin(now - latest.fetchedAtMs, latest.keepMs);
  const known = isFresh ? latest : await load(source, options);
  if (await isSignedByOne(known.keys)) return true;
  if (!isFresh || isWithin(now - known.fetchedAtMs, REFETCH_AFTER_MS)) return false;
  // Another verification may have read newer ones meanwhile.
  const newer = source.latest && source.latest !== known ? source.latest : null;
  return isSignedByOne((newer ?? (await load(source, options))).keys);
}

/** False as well for a negative age: the clock was set back, and nobody knows how old something is. */
const isWithin = (ageMs: number, limitMs: number): boolean => ageMs >= 0 && ageMs < limitMs;

function sourceOf(url: string): Source {
  const known = sources.get(url);
  if (known) return known;
  if (sources.size >= MAX_SOURCES) sources.clear();
  const source: Source = { latest: null, loading: null, failure: null };
  sources.set(url, source);
  return source;
}

/**
 * Waits for the keys with a timer of its own. In workers a request ends with its visitor, and what others wait for
 * with it: they must neither wait for ever nor for the same request again.
 */
async function load(source: Source, options: KeySetOptions): Promise<KeySet> {
  const now = options.nowMs();
  const { failure } = source;
  if (failure && isWithin(now - failure.atMs, RETRY_AFTER_MS)) throw failure.error;
  if (!source.loading || !isWithin(now - source.loading.sinceMs, FETCH_TIMEOUT_MS)) {
    source.loading = { keySet: fetchInto(source, options), sinceMs: now };
  }
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const error = unavailable(options.jwksUrl, 'no answer');
    timer = setTimeout(reject, FETCH_TIMEOUT_MS, error);
  });
  try {
    return await Promise.race([source.loading.keySet, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function fetchInto(source: Source, options: KeySetOptions): Promise<KeySet> {
  const { jwksUrl, nowMs } = options;
  try {
    const keySet = await fetchKeySet(options);
    source.latest = keySet;
    source.failure = null;
    return keySet;
  } catch (error) {
    source.failure = { error: unavailable(jwksUrl, String(error), error), atMs: nowMs() };
    throw source.failure.error;
  } finally {
    source.loading = null;
  }
}

const unavailable = (url: string, reason: string, cause?: unknown): VerifyError =>
  new VerifyError('keys_unavailable', `Cannot read the keys at ${url}: ${reason}`, { cause });

async function fetchKeySet({ jwksUrl, fetch, nowMs }: KeySetOptions): Promise<KeySet> {
  // A redirect would lead to an address that nobody has configured. Workers know no redirect: 'error'.
  const response = await fetch(jwksUrl, {
    redirect: 'manual',
    signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
  });
  if (response.status !== 200) throw new Error(`status ${response.status}`);
  const text = new TextDecoder().decode(await readBytes(response.body, MAX_BYTES));
  const { keys } = JSON.parse(text) as { keys: unknown };
  if (!Array.isArray(keys)) throw new Error('the answer is not a JWK Set');
  // Ed25519 keys have 32 bytes (RFC 8037). Keys of other kinds are passed over.
  const points = keys.slice(0, MAX_KEYS).map((jwk: Partial<Jwk> | null) => {
    const point = jwk?.crv === 'Ed25519' ? fromBase64(jwk.x) : null;
    return point?.length === 32 ? [point] : [];
  });
  const maxAge = /max-age=(\d+)/i.exec(response.headers.get('cache-control') ?? '')?.[1] ?? 0;
  return {
    keys: await Promise.all(
      points
        .flat()
        .map((point) => crypto.subtle.importKey('raw', point, 'Ed25519', false, ['verify'])),
    ),
    fetchedAtMs: nowMs(),
    keepMs: Math.min(Math.max(Number(maxAge) * 1_000, MIN_KEEP_MS), MAX_KEEP_MS),
  };
}

type Jwk = Record<'crv' | 'x', unknown>;

/** Decodes base64 and base64url; null when it is neither. */
export function fromBase64(text: unknown): Bytes | null {
  try {
    const binary = atob(String(text).replaceAll('-', '+').replaceAll('_', '/'));
    return Uint8Array.from(binary, (char) => char.charCodeAt(0));
  } catch {
    return null;
  }
}
