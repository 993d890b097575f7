import { type InfiniteData, type QueryKey, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { answerOf, api, type Schemas } from '../../api/client.ts';
import { type LiveEvent, useLive } from '../../api/live.ts';
import { noticeEndOfSession } from '../../api/query-client.ts';
import { type Page, withMessage } from './with-message.ts';

/** Rows that change in this time are read together. */
const PAUSE_MS = 2_000;
/** What one reading may ask of the gateway. The others follow after the pause. */
const MAX_AT_ONCE = 5;

/** Keeps the state of the messages in a list as it is now. Adds and moves no row. */
export function useRowUpdates(key: QueryKey, rows: readonly Schemas['ListedMessage'][]): void {
  const client = useQueryClient();
  const stale = useRef(new Set<string>());
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const isGone = useRef(false);
  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
      clearTimeout(timer.current);
    };
  }, []);
  const readAgain = async (): Promise<void> => {
    const ids = [...stale.current].slice(0, MAX_AT_ONCE);
    for (const id of ids) stale.current.delete(id);
    const read = await Promise.all(ids.map((id) => findMessage(id)));
    if (isGone.current) return;
    for (const message of read) {
      if (message === null) continue;
      client.setQueryData<InfiniteData<Page>>(key, (data) => data && withMessage(data, message));
    }
    timer.current = stale.current.size > 0 ? later() : undefined;
  };
  const later = () => setTimeout(() => void readAgain(), PAUSE_MS);
  useLive((event) => {
    if (document.hidden) return;
    for (const id of concerned(event, rows)) stale.current.add(id);
    if (stale.current.size > 0) timer.current ??= later();
  });
}

/** Without the name of the message, every one that waits for an attempt may have changed. */
function concerned(event: LiveEvent, rows: readonly Schemas['ListedMessage'][]): string[] {
  const changed =
    event.kind === 'attempt'
      ? rows.filter(({ id }) => id === event.attempt.messageId)
      : rows.filter(({ status }) => status === 'pending');
  return changed.map(({ id }) => id);
}

/** Null when it cannot be read now: the row stays as it is, and the next event asks again. */
async function findMessage(messageId: string): Promise<Schemas['Message'] | null> {
  const params = { path: { messageId } };
  const found = await answerOf(api.GET('/webhook-messages/{messageId}', { params })).catch(
    (error: unknown) => {
      noticeEndOfSession(error);
      return null;
    },
  );
  return found?.data ?? null;
}
