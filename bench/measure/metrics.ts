/** What stores and services have counted since they were started, by name. */
export type Counts = Readonly<Record<string, number>>;

/** Returns all metrics of one service as text; empty when it does not respond. */
export async function readMetrics(opsUrl: string): Promise<string> {
  try {
    const response = await fetch(`${opsUrl}/metrics`, { signal: AbortSignal.timeout(5_000) });
    return await response.text();
  } catch {
    return '';
  }
}

const SAMPLE = /^(\w+)(?:\{(.*)\})? (\S+)$/gm;

function samplesOf(text: string, name: string): { labels: string; value: number }[] {
  const found = [...text.matchAll(SAMPLE)].filter(([, each]) => each === name);
  return found.map(([, , labels = '', value]) => ({ labels, value: Number(value) }));
}

/** Returns the values of one metric, one for each set of labels. */
export const metricValues = (text: string, name: string): number[] =>
  samplesOf(text, name).map(({ value }) => value);

/** Returns the sum of the samples of one metric whose labels contain `wanted`; null when there is none. */
export function metricIn(text: string, name: string, wanted = ''): number | null {
  const samples = samplesOf(text, name).filter(({ labels }) => labels.includes(wanted));
  return samples.length === 0 ? null : samples.reduce((sum, { value }) => sum + value, 0);
}

/** Returns the values of one metric by one of its labels; samples without that label are left out. */
export function metricBy(text: string, name: string, label: string): Record<string, number> {
  const labelled = new RegExp(`(?:^|,)${label}="([^"]*)"`);
  const values = samplesOf(text, name).map(({ labels, value }) => [
    labelled.exec(labels)?.[1],
    value,
  ]);
  return Object.fromEntries(values.filter(([found]) => found !== undefined)) as Counts;
}

const OWN = /^(posthorn_\w+(?<!_bucket)(?:\{.*\})?) (\S+)$/gm;

/** Returns the metrics of Posthorn by `name{labels}`, without the buckets of histograms. */
export function metricCounts(text: string): Counts {
  const found = text.matchAll(OWN);
  return Object.fromEntries([...found].map(([, name = '', value]) => [name, Number(value)]));
}
