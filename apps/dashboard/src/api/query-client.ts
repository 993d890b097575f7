import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiFailure } from './failure.ts';
import { sessionQuery } from './session.ts';

const MOST_RETRIES = 2;

/** A session that has ended, or whose key was revoked, leads to the sign-in page; the address stays. */
function noticeEndOfSession(error: unknown): void {
  if (error instanceof ApiFailure && error.status === 401) {
    queryClient.setQueryData(sessionQuery.queryKey, null);
  }
}

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noticeEndOfSession }),
  mutationCache: new MutationCache({ onError: noticeEndOfSession }),
  defaultOptions: {
    queries: {
      // What the gateway refuses, it refuses again. Without an answer or with 5xx, it may recover.
      retry: (failures, error) => failures < MOST_RETRIES && !isRefusal(error),
      refetchOnWindowFocus: false,
    },
  },
});

function isRefusal(error: Error): boolean {
  return error instanceof ApiFailure && error.status >= 400 && error.status < 500;
}
