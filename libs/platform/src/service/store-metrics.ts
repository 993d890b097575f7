import { Counter, Histogram, type Registry } from 'prom-client';

/** The operations with a label of their own; every other one is `other`. */
const OPERATIONS = {
  mongodb: [
    'find',
    'getMore',
    'aggregate',
    'insert',
    'update',
    'delete',
    'findAndModify',
    'other',
    // Before an operation, and only when they fail: to find a server, and a free connection to it.
    'selectServer',
    'checkOut',
  ],
  redis: ['read', 'write', 'publish', 'other'],
  kafka: ['produce', 'commit'],
} as const;

type Operations = typeof OPERATIONS;

type StoreName = keyof Operations;

export type OperationOf<Store extends StoreName> = Operations[Store][number];

/** Times and errors of the operations on one store. */
export interface StoreMetrics<Store extends StoreName> {
  succeeded: (operation: OperationOf<Store>, tookMs: number) => void;
  failed: (operation: OperationOf<Store>, tookMs: number) => void;
}

interface Instruments {
  seconds: Histogram<'store' | 'operation'>;
  errors: Counter<'store' | 'operation'>;
}

/** All stores of a registry share two metrics. */
const instruments = new WeakMap<Registry, Instruments>();

export function createStoreMetrics<Store extends StoreName>(
  registry: Registry,
  store: Store,
): StoreMetrics<Store> {
  const { seconds, errors } = instrumentsOf(registry);
  for (const operation of OPERATIONS[store]) errors.inc({ store, operation }, 0);
  return {
    succeeded(operation, tookMs) {
      seconds.observe({ store, operation }, tookMs / 1_000);
    },
    failed(operation, tookMs) {
      seconds.observe({ store, operation }, tookMs / 1_000);
      errors.inc({ store, operation });
    },
  };
}

function instrumentsOf(registry: Registry): Instruments {
  const known = instruments.get(registry);
  if (known) return known;
  const labelNames = ['store', 'operation'] as const;
  const created = {
    seconds: new Histogram({
      name: 'posthorn_store_operation_duration_seconds',
      help: 'Time from sending an operation to MongoDB, Redis or Kafka to its answer or its failure. Of commands that Redis gets in one pipeline, the first is timed.',
      labelNames,
      buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5],
      registers: [registry],
    }),
    errors: new Counter({
      name: 'posthorn_store_errors_total',
      help: 'Operations on MongoDB, Redis or Kafka that failed. Most are repeated.',
      labelNames,
      registers: [registry],
    }),
  };
  instruments.set(registry, created);
  return created;
}
