import { Button } from '@mantine/core';
import type { UseInfiniteQueryResult, UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Failed, Loading } from './states.tsx';

interface QueryViewProps<Data> {
  query: Pick<UseQueryResult<Data>, 'data' | 'error' | 'refetch'>;
  /** Completes "Waiting for …" and "Could not load …". */
  what: string;
  children: (data: Data) => ReactNode;
}

/** Shows what a query found, or that it is awaited, or why it failed. Older data stay when a reload fails. */
export function QueryView<Data>({ query, what, children }: QueryViewProps<Data>) {
  const { data, error, refetch } = query;
  const retry = (): void => {
    void refetch();
  };
  const failed =
    error === null ? null : <Failed error={error} what={`load ${what}`} retry={retry} />;
  if (data === undefined) return failed ?? <Loading what={what} />;
  return (
    <>
      {failed}
      {children(data)}
    </>
  );
}

interface ShowMoreProps {
  query: Pick<UseInfiniteQueryResult, 'hasNextPage' | 'isFetchingNextPage' | 'fetchNextPage'>;
  /** What the button says, such as "Show older events". */
  children: string;
}

/** Reads the next page of a list. Not there on the last page. */
export function ShowMore({ query, children }: ShowMoreProps) {
  if (!query.hasNextPage) return null;
  return (
    <Button
      variant="default"
      loading={query.isFetchingNextPage}
      onClick={() => void query.fetchNextPage()}
    >
      {children}
    </Button>
  );
}
