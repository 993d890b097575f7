import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';

export const VERSION = '0.1.0';

/** Returns the registry of a process, with Node's own metrics and the version; the service adds its own. */
export function createRegistry(service: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'posthorn_build_info',
    help: 'Always 1; the label is the running version.',
    labelNames: ['version'],
    registers: [registry],
  }).set({ version: VERSION }, 1);
  return registry;
}

/** Adds a gauge that tells whether each dependency answers; read at each scrape. */
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
