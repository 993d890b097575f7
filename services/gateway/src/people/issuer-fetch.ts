import { createByteCollector } from '@posthorn/platform/memory/byte-collector.ts';
import type { ServerMetadata } from 'openid-client';
import type { IssuerRequest, SignInMetrics } from './sign-in-metrics.ts';

/** The issuer has sent no response, or one that is too long, or one that says that it cannot respond. */
export class IssuerUnavailableError extends Error {
  override readonly name = 'IssuerUnavailableError';
}

/** Whether the issuer could not be reached, at any depth of causes: libraries wrap the errors of `fetch`. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof IssuerUnavailableError) return true;
  return error instanceof Error && error.cause !== undefined && isUnavailable(error.cause);
}

type Endpoints = Pick<ServerMetadata, 'token_endpoint' | 'userinfo_endpoint'>;

type BoundedFetch = (url: string, options: object) => Promise<Response>;

export type IssuerFetch = BoundedFetch & {
  /** Labels requests in the metrics from now on; until then all of them are `discovery`. */
  useEndpoints: (endpoints: Endpoints) => void;
};

const MAX_BYTES = 262_144;

/** Returns a `fetch` for the requests of one issuer. Their callers set the time that they may take. */
export function createIssuerFetch({ requested }: Pick<SignInMetrics, 'requested'>): IssuerFetch {
  const labels = new Map<string, IssuerRequest>();
  let others: IssuerRequest = 'discovery';
  const fetchBounded: BoundedFetch = async (url, options) => {
    const label = labels.get(url) ?? others;
    try {
      const response = await receive(url, options);
      requested(label, 'done');
      return response;
    } catch (error) {
      requested(label, 'failed');
      throw new IssuerUnavailableError('the issuer cannot be reached', { cause: error });
    }
  };
  return Object.assign(fetchBounded, {
    useEndpoints({ token_endpoint: token, userinfo_endpoint: userinfo }: Endpoints) {
      others = 'keys';
      if (userinfo !== undefined) labels.set(userinfo, 'userinfo');
      if (token !== undefined) labels.set(token, 'token');
    },
  });
}

const SERVER_ERROR = 500;

async function receive(url: string, options: object): Promise<Response> {
  const response = await fetch(url, { ...options, redirect: 'manual' });
  const { status, headers } = response;
  if (status >= SERVER_ERROR) throw new Error(`the issuer has responded with ${status}`);
  const received = createByteCollector({ maxBytes: MAX_BYTES });
  const body: AsyncIterable<Uint8Array> | null = response.body;
  for await (const chunk of body ?? []) {
    received.add(chunk);
    if (received.receivedBytes() > MAX_BYTES) {
      throw new Error(`the response has more than ${MAX_BYTES} bytes`);
    }
    if (received.isShredded()) throw new Error('the response comes in chunks of a few bytes');
  }
  // A status without content takes no body, not even an empty one.
  const bytes = received.receivedBytes() === 0 ? null : new Uint8Array(received.bytes());
  return new Response(bytes, { status, headers });
}
