import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import manifest from '../../../../package.json' with { type: 'json' };

/** The version of the release: all packages, the image and the chart have it (docs/versions.md). */
export const VERSION = manifest.version;

/**
 * Returns the registry of a process, with Node's own metrics and the version; the service adds its own. No
 * label is on every metric: Prometheus adds `service` itself, and would rename one of ours.
 */
export function createRegistry(service: string): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_EVERY_MS });
  showLateness(registry);
  keepLagUntilMeasured(registry);
  new Gauge({
    name: 'posthorn_build_info',
    help: 'Always 1; the labels are the running version and the service: gateway, dispatcher, retry or ingest.',
    labelNames: ['version', 'component'],
    registers: [registry],
  }).set({ version: VERSION, component: service }, 1);
  return registry;
}

type LagGauge = Gauge & { collect: () => void };

/** Of what Node measures, these contain the time between two measurements; they show how late one was. */
const WITH_INTERVAL = ['min', 'max', 'mean', 'p50', 'p90', 'p99'];

function showLateness(registry: Registry): void {
  for (const name of WITH_INTERVAL) {
    const gauge = registry.getSingleMetric(`nodejs_eventloop_lag_${name}_seconds`) as Gauge;
    const set = gauge.set.bind(gauge) as (labels: object, seconds: number) => void;
    const setLateness = (labels: object, seconds: number): void => {
      set(labels, Math.max(0, seconds - LAG_EVERY_MS / 1_000));
    };
    Object.assign(gauge, { set: setLateness });
  }
}

/**
 * How often Node measures the lag of the event loop. Each measurement is a wake; every 10 ms, which is the default, they were
 * half of the processor time of an idle service.
 */
const LAG_EVERY_MS = 250;
/** More than the time between two measurements. */
const MEASURED_MS = 2 * LAG_EVERY_MS;

/**
 * Lets a scrape show the event loop's lag of the scrape before it until the lag was measured again. prom-client empties
 * its histogram at each scrape; of an empty one Node returns NaN as mean and deviation, and 292 years as minimum.
 */
function keepLagUntilMeasured(registry: Registry): void {
  const lag = registry.getSingleMetric('nodejs_eventloop_lag_seconds') as LagGauge;
  const collect = lag.collect.bind(lag);
  let isMeasured = false;
  const waitForMeasurement = (): void => {
    isMeasured = false;
    // An emptied histogram records from its second measurement on. Timers run in the order in which they are due, also
    // after a long pause, so both measurements were made when the second timer here runs.
    setTimeout(() => {
      setTimeout(() => {
        isMeasured = true;
      }, MEASURED_MS).unref();
    }, MEASURED_MS).unref();
  };
  lag.collect = () => {
    if (!isMeasured) return;
    collect();
    waitForMeasurement();
  };
  waitForMeasurement();
}

/** Adds a gauge that shows whether each dependency responds; read at each scrape. */
export function watchDependencies(
  registry: Registry,
  dependencies: Readonly<Record<string, () => boolean>>,
): void {
  new Gauge({
    name: 'posthorn_dependency_up',
    help: '1 while the dependency answers, 0 while it does not.',
    labelNames: ['dependency'],
    registers: [registry],
    collect() {
      for (const [dependency, isUp] of Object.entries(dependencies)) {
        this.set({ dependency }, isUp() ? 1 : 0);
      }
    },
  });
}

interface CountedCache {
  counts: () => Readonly<Record<'hit' | 'miss', number>>;
}

/** Returns what adds a cache of configuration to the metric of look-ups. */
export function createCacheMetrics(
  registry: Registry,
): (name: string, cache: CountedCache) => void {
  const caches = new Map<string, CountedCache>();
  new Counter({
    name: 'posthorn_config_cache_requests_total',
    help: 'Look-ups of cached configuration: hit without a read of MongoDB, miss with one.',
    labelNames: ['cache', 'result'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [cache, counted] of caches)
        for (const [result, count] of Object.entries(counted.counts()))
          this.inc({ cache, result }, count);
    },
  });
  return (name, cache) => void caches.set(name, cache);
}

/**
 * Creates the series of these values of a label, at 0. Prometheus does not see the first increment of a
 * series that comes with it.
 */
export function startAtZero<Label extends string>(
  counter: Counter<Label>,
  label: Label,
  values: Iterable<string>,
): void {
  for (const value of values) {
    const labels: Partial<Record<Label, string>> = {};
    labels[label] = value;
    counter.inc(labels, 0);
  }
}
