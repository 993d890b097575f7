const MIB = 1_048_576;

/**
 * The share of each part of a process, in MiB, while MEMORY_MIB has its default, which is their sum. With another
 * MEMORY_MIB all of them grow or shrink by the same factor. With about 130 MiB for the process itself a gateway and a
 * dispatcher stay below 430 MiB.
 */
const PARTS = {
  gateway: {
    /** Requests that wait for MongoDB; further requests get 503. */
    accept_queue: 64,
    /** Messages that wait for Kafka; further ones are read back from MongoDB. */
    publish_queue: 48,
    /** Requests, their bodies, repeated and unsent responses; further requests get 503. */
    requests: 64,
    /** Cached webhooks. */
    target_cache: 32,
    /** Cached API keys. */
    api_key_cache: 24,
    /** The counts of the rate limits. */
    rate_counts: 16,
    /**
     * Counts of messages that are not yet in MongoDB, of 3,200 companies in a minute for each MiB; when it is full, no
     * further message is accepted until MongoDB takes them.
     */
    stats: 16,
    /** Objects with a uid, 2,000 for each MiB. */
    uid_cache: 8,
    /** Sign-ins under way, with bodies of 4 KiB: 256 of one address. */
    sign_ins: 4,
    /** Requests that wait for the look-up of their key: 1,536 of one address. */
    unknown_callers: 12,
  },
  dispatcher: {
    /** Records in flight; when it is full, nothing more is read. */
    records: 32,
    /** Payloads loaded for attempts under way. */
    payloads: 64,
    payload_cache: 32,
    webhook_cache: 48,
    /** Open connections, of 17 over TLS or 51 others for each MiB; above it idle ones are closed. */
    connections: 80,
    /** Certificates and keys of webhooks with TLS settings of their own, 25 for each MiB. */
    tls_clients: 24,
    /** TLS sessions of endpoints, of about 500 for each MiB. */
    tls_session_cache: 48,
    /** Addresses of host names, of about 2,500 for each MiB. */
    host_cache: 8,
    /** OAuth 2.0 access tokens. */
    token_cache: 8,
    /** The circuits of endpoints that failed recently. */
    circuits: 64,
    /**
     * Counts of attempts that are not yet in MongoDB, of 870 webhooks in a minute for each MiB. They are written when
     * two thirds of it are used; when it is full, no further attempt is settled until MongoDB takes them.
     */
    stats: 16,
  },
  ingest: {
    /** Records in flight; when it is full, nothing more is read. */
    records: 32,
    accept_queue: 48,
    publish_queue: 48,
    target_cache: 32,
    rate_counts: 16,
    stats: 16,
    uid_cache: 8,
  },
  retry: {
    /** Records in flight; when it is full, nothing more is read. */
    records: 32,
    /** Deliveries being resent and released. */
    resend_pages: 16,
  },
} as const satisfies Record<string, Record<string, number>>;

export type MemoryOwner = keyof typeof PARTS;

/** The default of MEMORY_MIB of this service: 288, 424, 200 or 48. */
export function defaultMemoryMib(owner: MemoryOwner): number {
  return Object.values(PARTS[owner]).reduce((sum, mib) => sum + mib, 0);
}

/** Returns the bytes that a part of the process may hold. */
export function memoryShare<Owner extends MemoryOwner>(
  owner: Owner,
  part: keyof (typeof PARTS)[Owner] & string,
  memoryMib: number,
): number {
  const parts: Readonly<Record<string, number>> = PARTS[owner];
  return Math.round(((parts[part] ?? 0) / defaultMemoryMib(owner)) * memoryMib * MIB);
}
