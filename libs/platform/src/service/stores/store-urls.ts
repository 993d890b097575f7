import { z } from 'zod';

/*
 * A password that is not percent-encoded moves the end of the host: of `mongodb://u:12/34@db/posthorn` a reader finds
 * the host `u`, port 12. What then fails names the "host", which is a part of the password, so such a URL is refused
 * when settings are read, and the refusal shows nothing of it.
 */

const LOGIN = 'user and password percent-encoded (@ as %40, / as %2F, : as %3A, % as %25)';

/** One `@` at most, before the hosts; one segment of a path; no fragment. */
const MONGODB =
  /^mongodb(?:\+srv)?:\/\/(?:([^\s:@/?#[\]]*(?::[^\s:@/?#[\]]*)?)@)?([^\s@/?#]+)(?:\/[^\s@/?#]*)?(?:\?[^\s@#]*)?$/;
const MONGODB_HOST = /^(?:\[[\da-f:.]+\]|[^[\]:,]+)(?::\d{1,5})?$/i;

export const mongodbUrl = z
  .string()
  .refine(isMongodbUrl, `must be a mongodb:// or mongodb+srv:// URL, ${LOGIN}`);

function isMongodbUrl(text: string): boolean {
  const [, login = '', hosts] = MONGODB.exec(text) ?? [];
  if (hosts === undefined || !isDecodable(login)) return false;
  return hosts.split(',').every((host) => MONGODB_HOST.test(host));
}

/** Returns the hosts of a MongoDB URL for messages: nothing else of it. */
export function hostsOf(url: string): string {
  const hosts = isMongodbUrl(url) ? MONGODB.exec(url)?.[2] : undefined;
  return hosts ?? 'the address of MONGODB_URL';
}

export const redisUrl = z
  .string()
  .refine(isRedisUrl, `must be a redis:// or rediss:// URL, ${LOGIN}`);

/** As ioredis reads it, which also takes an `@` in the password: the last one ends it. */
function isRedisUrl(text: string): boolean {
  const url = /^rediss?:\/\/\S+$/.test(text) ? URL.parse(text) : null;
  if (!url || !isDecodable(url.username + url.password)) return false;
  return /^\/?\d*$/.test(url.pathname) && !url.search.includes('@') && url.hash === '';
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
