/** `name` of a counter; the sum of its rate by these labels. `matchers` are PromQL, such as `code=~"5.."`. */
export function rateBy(labels: string, name: string, matchers = ''): string {
  return `sum by (${labels}) (rate(${selector(name, matchers)}[WINDOW]))`;
}

export function totalRate(name: string, matchers = ''): string {
  return `sum(rate(${selector(name, matchers)}[WINDOW]))`;
}

/** Zero where no such series exists yet: of a counter whose label has not occurred. */
export function orZero(expr: string): string {
  return `(${expr} or vector(0))`;
}

/** A quantile of a histogram, for each value of these labels. */
export function quantileBy(quantile: number, labels: string, name: string, matchers = ''): string {
  const by = ['le', labels].filter((label) => label !== '').join(', ');
  const rates = `sum by (${by}) (rate(${selector(`${name}_bucket`, matchers)}[WINDOW]))`;
  return `histogram_quantile(${quantile}, ${rates})`;
}

/** The highest value among the processes, for each value of these labels. */
export function highestBy(labels: string, name: string, matchers = ''): string {
  return `max by (${labels}) (${selector(name, matchers)})`;
}

export function sumBy(labels: string, name: string, matchers = ''): string {
  return `sum by (${labels}) (${selector(name, matchers)})`;
}

/** A metric that every program exports, of the processes of Posthorn alone. */
export function ofProcesses(expr: string): string {
  return `${expr} and on (job, instance) posthorn_build_info{SCOPE}`;
}

/** Seconds until what is ready is finished, if nothing new comes; nothing is shown where nothing is being finished. */
export const DRAIN_TIME = `${sumBy('group, topic', 'posthorn_ready_records')} / ${rateBy('group, topic', 'posthorn_finished_records_total')}`;

function selector(name: string, matchers: string): string {
  return `${name}{${['SCOPE', matchers].filter((part) => part !== '').join(', ')}}`;
}
