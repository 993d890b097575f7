import { DAY_KINDS, dayDatabaseName } from '@posthorn/platform/mongo/days/days.ts';

/** What the profiler of MongoDB writes about a command: the fields that tests read. */
export interface Profiled {
  ns: string;
  op: string;
  appName?: string;
  planSummary?: string;
  hasSortStage?: boolean;
  docsExamined?: number;
  keysExamined?: number;
  nreturned?: number;
  command: Record<string, unknown>;
}

/** Of a day: `messages` or `deliveries`. */
export function collectionOf({ ns }: Profiled): string {
  const end = ns.indexOf('.');
  const kind = DAY_KINDS.find((each) => ns.slice(0, end).endsWith(dayDatabaseName('', each)));
  return kind ?? ns.slice(end + 1);
}
const shown = (each: Profiled): string =>
  `${each.appName ?? ''} ${each.op} ${collectionOf(each)} ${each.planSummary ?? ''} ` +
  JSON.stringify(each.command.filter ?? each.command.q ?? each.command.query ?? each.command);
/** Returns one command of each kind, as text for the report of a test. */
export const distinct = (found: Profiled[]): string[] => [
  ...new Map(
    found.map((each) => [`${each.ns} ${Object.keys(each.command).join()}`, shown(each)]),
  ).values(),
];
