import { Alert, Button, Group, Loader, Text, Title } from '@mantine/core';
import { type UseInfiniteQueryResult, useQuery, type UseQueryResult } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import { PORTAL_COMPANY_ID } from '../api/addresses.ts';
import { nextStepOf, type Reader } from '../api/failure-words.ts';
import { type ApiFailure, type Problem, toFailure } from '../api/failure.ts';
import { sessionQuery } from '../api/session.ts';
import { Copyable } from './values.tsx';
import styles from './parts.module.css';

/** Shorter waits show nothing: a flash of a spinner only disturbs. */
const QUIET_MS = 400;

/** Says what is awaited, once it takes longer than a moment. */
export function Loading({ what }: { what: string }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => {
      setShown(true);
    }, QUIET_MS);
    return () => {
      clearTimeout(timer);
    };
  }, []);
  if (!isShown) return <div className={styles.state} aria-busy="true" />;
  return (
    <div className={styles.state} role="status">
      <Loader size="sm" aria-hidden />
      <Text>Waiting for {what} …</Text>
    </div>
  );
}

/** Why something could not be shown or done, and what to do next. */
export function Failed({
  error,
  what,
  next,
  retry,
  isAtField = () => false,
}: {
  error: unknown;
  what: string;
  /** The next step, where the words for the code do not fit. */
  next?: ReactNode;
  retry?: () => void;
  /** Whether a field of the page says this problem itself. */
  isAtField?: (problem: Problem) => boolean;
}) {
  const failure = toFailure(error);
  const reader = useReader();
  return (
    <Alert color="red" variant="light" title={`Could not ${what}`} role="alert">
      <Problems failure={failure} isAtField={isAtField} />
      <Text size="sm">{next ?? nextStepOf(failure.code, failure.status, reader)}</Text>
      <Group gap="xs" mt="xs">
        {retry && (
          <Button size="xs" variant="default" onClick={retry}>
            Try again
          </Button>
        )}
        <Text size="xs">
          Code <code>{failure.code}</code>
        </Text>
        {failure.requestId !== null && <Copyable text={failure.requestId} name="request id" />}
      </Group>
    </Alert>
  );
}

/** Failures are shown to people without a session too. */
function useReader(): Reader {
  const { data: session } = useQuery({ ...sessionQuery, enabled: false });
  if (PORTAL_COMPANY_ID !== null) return 'visitor';
  return (session?.person ?? null) === null ? 'key' : 'person';
}

interface ProblemsProps {
  failure: ApiFailure;
  isAtField: (problem: Problem) => boolean;
}

/** What is wrong with the request, each once: the message of a failure with problems repeats the first of them. */
function Problems({ failure: { message, problems }, isAtField }: ProblemsProps) {
  if (problems.length === 0) return <Text size="sm">{message}</Text>;
  const others = problems.filter((problem) => !isAtField(problem));
  return (
    <>
      {others.length < problems.length && (
        <Text size="sm">The fields that are marked say what is wrong with them.</Text>
      )}
      {others.length > 0 && (
        <ul className={styles.problems}>
          {others.map(({ path, message: wrong }) => (
            <li key={`${path} ${wrong}`}>
              <code>{path}</code> {wrong}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** Why there is nothing to show, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <Title order={2} size="h4">
        {title}
      </Title>
      {children}
    </div>
  );
}

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
