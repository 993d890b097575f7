import {
  readTokenAnswer,
  tokenRequestOf,
  type TokenAnswer,
} from '@posthorn/domain/request/access-token.ts';
import type { OAuth2Client } from '@posthorn/domain/webhook.ts';
import type { Dispatcher } from 'undici';
import { post, type ExchangeDeps } from '../send-webhook.ts';

/** What came of a token request. The values are labels of `posthorn_token_requests_total`. */
export const TOKEN_RESULTS = [
  'token',
  // The token server failed, or gave no token.
  'failed',
  // The egress proxy failed. This is never charged to the token server.
  'fault',
] as const;

export type TokenResult = (typeof TOKEN_RESULTS)[number];

/**
 * Makes one token request. Resolves with null when our proxy failed. Never rejects. `key` is that of the
 * credentials in the cache.
 */
export type RequestToken = (client: OAuth2Client, key: string) => Promise<TokenAnswer | null>;

export interface RequestTokenDeps extends ExchangeDeps {
  /** Called with the key of the credentials, because many companies may share a token server. */
  agentOf: (key: string) => Pick<Dispatcher, 'dispatch'>;
  userAgent: string;
  onResult: (result: TokenResult) => void;
}

/** A token has at most 8 KiB, and the other fields are short. What is longer is no JSON when it is cut. */
const KEPT_BYTES = 32_768;

export function createRequestToken(deps: RequestTokenDeps): RequestToken {
  return async (client, key) => {
    const answer = await ask(deps, client, key);
    deps.onResult(answer?.kind ?? 'fault');
    return answer;
  };
}

async function ask(
  deps: RequestTokenDeps,
  client: OAuth2Client,
  key: string,
): Promise<TokenAnswer | null> {
  const { origin, pathname, search } = new URL(client.tokenUrl);
  const { headers: fields, body } = tokenRequestOf(client);
  const headers = [...Object.entries(fields).flat(), 'user-agent', deps.userAgent];
  const options = { origin, path: pathname + search, headers, body };
  const exchange = await post(deps, () => ({ agent: deps.agentOf(key), options }), KEPT_BYTES);
  if (!exchange) return null;
  const { outcome, statusCode, response } = exchange;
  if (statusCode === null) {
    return { kind: 'failed', reason: `no answer from the token server: ${outcome}` };
  }
  return readTokenAnswer(statusCode, response ?? '');
}
