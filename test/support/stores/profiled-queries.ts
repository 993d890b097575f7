/** What the profiler of MongoDB writes about a command: the fields that tests read. */
export interface Profiled {
  ns: string;
  op: string;
  appName?: string;
  planSummary?: string;
  hasSortStage?: boolean;
  docsExamined?: number;
  command: Record<string, unknown>;
}

export const collectionOf = ({ ns }: Profiled): string => ns.slice(ns.indexOf('.') + 1);
const shown = (each: Profiled): string =>
  `${each.appName ?? ''} ${each.op} ${collectionOf(each)} ${each.planSummary ?? ''} ` +
  JSON.stringify(each.command.filter ?? each.command.q ?? each.command.query ?? each.command);
/** Returns one command of each kind, as text for the report of a test. */
export const distinct = (found: Profiled[]): string[] => [
  ...new Map(
    found.map((each) => [`${each.ns} ${Object.keys(each.command).join()}`, shown(each)]),
  ).values(),
];
