import { Counter, type Registry } from 'prom-client';
import { toApiError } from '../api-error.ts';

/** What opens the dashboard: an API key, a sign-in link of an operator, the issuer. */
const WAYS = ['key', 'link', 'issuer'] as const;
export type SignInWay = (typeof WAYS)[number];

const RESULTS = ['done', 'refused', 'failed'] as const;

const REQUESTS = ['discovery', 'token', 'userinfo', 'keys'] as const;
export type IssuerRequest = (typeof REQUESTS)[number];

export interface SignInMetrics {
  /** Counts a sign-in when it has ended, and returns what it returns. */
  count: <Result>(way: SignInWay, work: () => Promise<Result>) => Promise<Result>;
  requested: (request: IssuerRequest, result: 'done' | 'failed') => void;
}

const SERVER_ERROR = 500;

export function createSignInMetrics(registry: Registry): SignInMetrics {
  const registers = [registry];
  const signIns = new Counter({
    name: 'posthorn_sign_ins_total',
    help: 'Sign-ins to the dashboard, by way and result; failed: a store or the issuer could not be reached.',
    labelNames: ['way', 'result'],
    registers,
  });
  for (const way of WAYS) for (const result of RESULTS) signIns.inc({ way, result }, 0);
  const requests = new Counter({
    name: 'posthorn_issuer_requests_total',
    help: 'Requests to OIDC_ISSUER, by request and result; failed: no response in time, or one that says that it cannot respond.',
    labelNames: ['request', 'result'],
    registers,
  });
  for (const request of REQUESTS) {
    for (const result of ['done', 'failed']) requests.inc({ request, result }, 0);
  }
  return {
    async count(way, work) {
      try {
        const done = await work();
        signIns.inc({ way, result: 'done' });
        return done;
      } catch (error) {
        const isFailure = toApiError(error).status >= SERVER_ERROR;
        signIns.inc({ way, result: isFailure ? 'failed' : 'refused' });
        throw error;
      }
    },
    requested: (request, result) => {
      requests.inc({ request, result });
    },
  };
}
