/** What a dashboard shows, without Grafana's spelling of it. */
export interface Dashboard {
  /** Name of the file, and part of its address in Grafana. */
  name: string;
  title: string;
  description: string;
  rows: readonly Row[];
}

/** Panels side by side, all of the same width. */
export interface Row {
  title: string;
  panels: readonly Panel[];
}

export interface Panel {
  title: string;
  /** What the reader should conclude. */
  description?: string;
  unit: Unit;
  queries: readonly Query[];
}

/** As Grafana names them; `short` is a plain number. */
export type Unit = 's' | 'bytes' | 'percentunit' | 'short' | 'reqps';

export interface Query {
  /** PromQL. `SCOPE` stands for the installation, and `WINDOW` for the window of rates. */
  expr: string;
  /** Shown in the legend, with labels such as `{{topic}}`. */
  legend: string;
}

/** Matches the chosen namespace, and series without one. */
const SCOPE = 'namespace=~"$namespace"';
const WINDOW = '$__rate_interval';

/** Returns the query as Grafana sends it. */
export function inGrafana(expr: string): string {
  return expr.replaceAll('SCOPE', SCOPE).replaceAll('WINDOW', WINDOW);
}

/** Returns the query as it can be asked of Prometheus itself, for all namespaces. */
export function inPrometheus(expr: string, window: string): string {
  return expr.replaceAll('SCOPE', 'namespace=~".*"').replaceAll('WINDOW', window);
}
