import {
  BadRequestError,
  type MessageResult,
  type Posthorn,
  PosthornError,
  type RequestOptions,
  type SendManyMessage,
} from '@posthorn/client';
import { type Outcome, RefusedItem } from './send-all.ts';

/** What the API answers for a message of a batch that it accepted. */
export type Accepted = Required<Pick<MessageResult, 'status' | 'messageId' | 'deliveries'>>;

/**
 * Sends messages, each of which needs a key of its own, and returns what became of each. The API refuses a whole request
 * for a message that is not valid (docs/contract.md C22.2): the others are sent without it.
 */
export async function sendBatch(
  api: Posthorn,
  messages: readonly SendManyMessage[],
  options: RequestOptions,
): Promise<Outcome<Accepted>[]> {
  const outcomes: Outcome<Accepted>[] = [];
  let left = [...messages.entries()].map(([place, message]) => ({ place, message }));
  while (left.length > 0) {
    const { results, error } = await sendOnce(
      api,
      left.map(({ message }) => message),
      options,
    );
    const refused = refusedIn(error, left.length);
    const again: typeof left = [];
    for (const [n, each] of left.entries()) {
      const result = results[n];
      // One that failed for the moment had no repeat yet when the request after it was refused.
      const isDecided = result && (refused.size === 0 || result.status !== 'failed');
      const problems = refused.get(n);
      if (problems) outcomes[each.place] = { error: problems };
      else if (isDecided) outcomes[each.place] = outcomeOf(result);
      else if (refused.size > 0) again.push(each);
      else outcomes[each.place] = { error };
    }
    left = again;
  }
  return outcomes;
}

interface Answer {
  results: readonly (MessageResult | null)[];
  error: unknown;
}

async function sendOnce(
  api: Posthorn,
  messages: readonly SendManyMessage[],
  options: RequestOptions,
): Promise<Answer> {
  try {
    return { results: await api.messages.sendMany(messages, options), error: null };
  } catch (error) {
    const { results = [] } = error instanceof PosthornError ? error : {};
    return { results, error };
  }
}

function outcomeOf({
  status,
  messageId,
  deliveries,
  code,
  message,
}: MessageResult): Outcome<Accepted> {
  if (messageId === undefined) return { error: new RefusedItem(message ?? status, code) };
  return { result: { status, messageId, deliveries: deliveries ?? 0 } };
}

/** Returns the messages that the error names as not valid, with their problems. */
function refusedIn(error: unknown, count: number): Map<number, RefusedItem> {
  if (!(error instanceof BadRequestError)) return new Map();
  const { errors, code } = error;
  const texts = errors?.map(({ path, message }) => `${path}: ${message}`) ?? [error.message];
  const problems = new Map<number, string[]>();
  for (const text of texts) {
    const [found = '', place = ''] = /(?: in )?\bmessages\.(\d+)(?:\.|: )?/.exec(text) ?? [];
    if (found === '' || Number(place) >= count) continue;
    const own = problems.get(Number(place)) ?? [];
    problems.set(Number(place), [...own, text.replace(found, '')]);
  }
  return new Map(
    [...problems].map(([place, own]) => [place, new RefusedItem(own.join('; '), code)]),
  );
}
