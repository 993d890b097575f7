import { StartupError } from './errors.ts';

/** The settings that tell whether a store is reached with TLS. A process has those of its stores. */
interface StoreConfig {
  ALLOW_PLAINTEXT_STORES?: boolean;
  KAFKA_BROKERS?: readonly string[];
  KAFKA_SSL?: boolean;
  MONGODB_URL?: string;
  MONGODB_TLS_CA_FILE?: string | undefined;
  REDIS_URL?: string;
}

/**
 * Throws StartupError in production when a store would be reached without TLS: payloads, and what may
 * be sent to whom, would cross the network readable and changeable.
 */
export function assertNoPlaintextStores(config: StoreConfig, env: NodeJS.ProcessEnv): void {
  if (env.NODE_ENV !== 'production' || config.ALLOW_PLAINTEXT_STORES) return;
  const plaintext = plaintextStoresOf(config);
  if (plaintext.length === 0) return;
  throw new StartupError(
    [
      'Posthorn cannot start: NODE_ENV is production, and stores would be reached without TLS:',
      ...plaintext.map((how) => `  ${how}`),
      'Set ALLOW_PLAINTEXT_STORES=true where the network between them is trusted. docs/security.md says more.',
    ].join('\n'),
  );
}

/** How each store without TLS can be given it. */
export function plaintextStoresOf({
  KAFKA_BROKERS,
  KAFKA_SSL,
  MONGODB_URL,
  MONGODB_TLS_CA_FILE,
  REDIS_URL,
}: StoreConfig): string[] {
  const found: string[] = [];
  if (KAFKA_BROKERS && !KAFKA_SSL) found.push('Kafka: set KAFKA_SSL=true');
  const isMongoPlain = MONGODB_URL !== undefined && !isTlsUrl(MONGODB_URL);
  if (isMongoPlain && MONGODB_TLS_CA_FILE === undefined) {
    found.push('MongoDB: end MONGODB_URL with tls=true, or set MONGODB_TLS_CA_FILE');
  }
  if (REDIS_URL?.startsWith('redis:')) found.push('Redis: begin REDIS_URL with rediss://');
  return found;
}

/** `mongodb+srv` has TLS unless the URL says otherwise. */
function isTlsUrl(url: string): boolean {
  const options = new URLSearchParams(url.slice(url.indexOf('?') + 1));
  const tls = options.get('tls') ?? options.get('ssl');
  return tls === null ? url.startsWith('mongodb+srv:') : tls === 'true';
}
