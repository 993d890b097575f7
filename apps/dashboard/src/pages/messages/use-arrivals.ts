import { useRef, useState } from 'react';
import { answerOf, api, given } from '../../api/client.ts';
import { type LiveEvent, useLive } from '../../api/live.ts';
import type { MessageFilter } from '../../api/messages.ts';
import { noticeEndOfSession } from '../../api/query-client.ts';

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
    if (isAsking.current || isMore || filter.to !== undefined) return;
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
  { webhookId, appId, to }: MessageFilter,
): boolean {
  if (to !== undefined) return false;
  if (webhookId !== undefined && attempt.webhookId !== webhookId) return false;
  return appId === undefined || attempt.appId === undefined || attempt.appId === appId;
}
