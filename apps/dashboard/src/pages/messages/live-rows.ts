import { type InfiniteData, type QueryKey, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { answerOf, api, given, type Schemas } from '../../api/client.ts';
import { type LiveEvent, useLive } from '../../api/live.ts';
import type { MessageFilter } from '../../api/messages.ts';
import { noticeEndOfSession } from '../../api/query-client.ts';
import { type Page, withMessage } from './message-rules.ts';

interface Arrivals {
  /** For the button that shows them; null when nothing arrived. */
  text: string | null;
  clear: () => void;
}

const NONE: ReadonlySet<string> = new Set();

/** Counts the messages that had an attempt and are not shown. A filter by status may leave some of them out. */
export function useArrivals(filter: MessageFilter, shown: ReadonlySet<string>): Arrivals {
  const [arrived, setArrived] = useState(NONE);
  const [isMore, setMore] = useState(false);
  const isAsking = useRef(false);
  const askForMore = async (): Promise<void> => {
    if (isAsking.current || isMore || filter.until !== undefined) return;
    isAsking.current = true;
    const newest = await findNewest(filter).catch(endOrNothing);
    isAsking.current = false;
    if (newest !== undefined && !shown.has(newest)) setMore(true);
  };
  useLive((event) => {
    if (event.kind === 'more' || (!isNamedByEvents(filter) && concerns(event, filter))) {
      void askForMore();
    } else if (concerns(event, filter) && !shown.has(event.attempt.messageId)) {
      setArrived((before) => new Set(before).add(event.attempt.messageId));
    }
  });
  const clear = (): void => {
    setArrived(NONE);
    setMore(false);
  };
  if (arrived.size > 0) return { text: `Show ${arrived.size} new`, clear };
  return { text: isMore ? 'Show what is new' : null, clear };
}

/** Any other failure is left to the next poll. */
function endOrNothing(error: unknown): undefined {
  noticeEndOfSession(error);
}

/** Which attempts there were is not known, so the list is asked for its first entry. */
async function findNewest(filter: MessageFilter): Promise<string | undefined> {
  const query = { ...given(filter), limit: 1 };
  const { data } = await answerOf(api.GET('/webhook-messages', { params: { query } }));
  return data[0]?.id;
}

/** Whether an event shows which messages the filter selects. */
function isNamedByEvents({ eventType, tag, externalId }: MessageFilter): boolean {
  return [eventType, tag, externalId].every((each) => each === undefined);
}

function concerns(
  { attempt }: Extract<LiveEvent, { kind: 'attempt' }>,
  { webhookId, appId, until }: MessageFilter,
): boolean {
  if (until !== undefined) return false;
  if (webhookId !== undefined && attempt.webhookId !== webhookId) return false;
  return appId === undefined || attempt.appId === undefined || attempt.appId === appId;
}

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
