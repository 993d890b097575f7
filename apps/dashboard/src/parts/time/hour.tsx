import { useNowMs } from './now.ts';
import { absoluteTime, hourText } from './time-words.ts';

/** The hour in which something happened, where the minute is not counted. */
export function Hour({ at }: { at: string }) {
  const beginsAtMs = Date.parse(at);
  return (
    <time dateTime={at} title={`In the hour from ${absoluteTime(beginsAtMs)}`}>
      {hourText(beginsAtMs, useNowMs())}
    </time>
  );
}
