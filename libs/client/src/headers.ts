import manifest from '../package.json' with { type: 'json' };

/** Headers of requests by name. */
export type GivenHeaders = Readonly<Record<string, string>>;

const USER_AGENT = `posthorn-client/${manifest.version}`;

/** The headers that the client sets by itself, and the option for each of them. */
const OWN_HEADERS: ReadonlyMap<string, string | null> = new Map([
  ['authorization', 'apiKey'],
  // The gateway prefers it to the header before.
  ['x-api-key', 'apiKey'],
  // Names a session of the dashboard, which would count instead of the key.
  ['x-posthorn-session', 'apiKey'],
  ['idempotency-key', 'idempotencyKey'],
  ['accept', null],
  ['content-type', null],
  ['x-posthorn-retry-count', null],
]);

export const isBrowser = (): boolean => 'document' in globalThis;

/** Of a request without others. A browser has its own `User-Agent`, and would ask another origin whether it allows ours. */
export const defaultHeaders = (): GivenHeaders => (isBrowser() ? {} : { 'user-agent': USER_AGENT });

/**
 * Returns the headers of a caller by lower-case name. Throws a TypeError, which never shows a value, when `fetch` would
 * refuse one, or the client sets it by itself.
 */
export function parseHeaders(given: GivenHeaders = {}): GivenHeaders {
  const entries = Object.entries(given).map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  );
  for (const [name, value] of entries) {
    const option = OWN_HEADERS.get(name);
    if (option !== undefined) {
      throw new TypeError(
        `headers: the client sets ${name} by itself${option === null ? '' : `, from ${option}`}`,
      );
    }
    if (!isHeader(name, value)) throw new TypeError(`headers: ${name} is not a valid header`);
  }
  return Object.fromEntries(entries);
}

function isHeader(name: string, value: string): boolean {
  try {
    return new Headers([[name, value]]).has(name);
  } catch {
    return false;
  }
}
